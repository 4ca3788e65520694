package stepup_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/auth/stepup"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/test/must"
)

// link gives the person an identity at a provider with values of acr.
func (fx *fixture) link(acr ...string) {
	fx.t.Helper()
	err := errors.Join(
		fx.ports.Providers.Save(context.Background(), company.Provider{Name: "acme", DisplayName: "Acme", Issuer: "i", ACR: acr}),
		fx.ports.Identities.Add(context.Background(), company.Identity{ID: "i1", UserID: user, Issuer: "i", Subject: "s"}),
	)
	must.Succeed(fx.t, err)
}

// TestCompany checks that only the answer of a provider passes a challenge of COMPANY, and that its
// address is good until then.
func TestCompany(t *testing.T) {
	t.Parallel()
	ctx, accept := context.Background(), func(context.Context, *auth.Challenge) error { return nil }
	refuse := func(context.Context, *auth.Challenge) error { return company.Reject("x", "it is wrong") }
	fx := newFixture(t)
	fx.link("gold")
	p, err := fx.service.Initiate(ctx, fx.getSession(), auth.CompanySignIn)
	if err != nil || len(p.Opens) < 40 || len(fx.mail.messages) > 0 {
		t.Fatalf("initiate: %+v, error %v", p, err)
	}
	opened, err := fx.service.Open(ctx, p.ID, p.Opens)
	if err != nil || opened.Provider.Name != "acme" || opened.Identity.Subject != "s" || opened.Session.ID != session {
		t.Fatalf("open: %+v, error %v", opened, err)
	}
	if _, err := fx.service.Open(ctx, p.ID, p.Opens[1:]); !fault.Is(err, fault.Invalid) {
		t.Errorf("a wrong code opens: %v", err)
	}
	for name, in := range map[string]stepup.Answer{
		"the code of the address": {ID: p.ID, Code: p.Opens}, "a refusal": {ID: p.ID, Check: refuse},
	} {
		if _, err := fx.service.Verify(ctx, in); !fault.Is(err, fault.Unauthenticated) {
			t.Errorf("%s: %v", name, err)
		}
	}
	broken := errors.New("away")
	_, err = fx.service.Verify(ctx, stepup.Answer{ID: p.ID, Check: func(context.Context, *auth.Challenge) error { return broken }})
	if !errors.Is(err, broken) || fx.getSession().TrustLevel != auth.Unverified {
		t.Errorf("an error of the check: %v, session %v", err, fx.getSession())
	}
	if _, err := fx.service.Verify(ctx, stepup.Answer{ID: p.ID, Check: accept}); err != nil || fx.getSession().TrustLevel != auth.FullTrust {
		t.Errorf("the answer of the provider: %v, session %v", err, fx.getSession())
	}
	if _, err := fx.service.Open(ctx, p.ID, p.Opens); !fault.Is(err, fault.Invalid) {
		t.Errorf("an address opens after it was used: %v", err)
	}
	if _, err := fx.service.Resend(ctx, p.ID); err == nil {
		t.Error("a code was sent")
	}
}

// TestCompanyRoutes checks who may verify at a company, and for how long.
func TestCompanyRoutes(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, test := range map[string]struct {
		link bool
		acr  []string
		want bool
	}{"no identity": {}, "no second factor": {link: true}, "a second factor": {true, []string{"gold"}, true}} {
		fx := newFixture(t)
		if test.link {
			fx.link(test.acr...)
		}
		routes, err := fx.service.Routes(ctx, fx.getSession())
		if err != nil || (routes[0].Method == auth.CompanySignIn) != test.want {
			t.Errorf("%s: %v, error %v", name, routes, err)
		}
		p, err := fx.service.Initiate(ctx, fx.getSession(), auth.CompanySignIn)
		if test.want == (err != nil) || !test.want && !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
		if fx.clock.Advance(10 * time.Minute); test.want {
			if _, err := fx.service.Open(ctx, p.ID, p.Opens); !fault.Is(err, fault.Invalid) {
				t.Errorf("%s: it opens late: %v", name, err)
			}
		}
	}
}
