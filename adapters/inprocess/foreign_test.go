package inprocess_test

import (
	"context"
	"encoding/json"
	"net/netip"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/inprocess"
	"github.com/tollgate-dev/tollgate/adapters/memory"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/access"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/auth/foreign"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

// noVerifier verifies no access token of a provider.
type noVerifier struct{}

func (noVerifier) ReadAccess(string) ([]byte, error) {
	return nil, company.Reject("malformed", "it is none")
}
func (noVerifier) VerifyAccess(context.Context, *company.Provider, string) error {
	return company.Reject("signature", "it is not signed")
}

// trustingVerifier takes every token as its payload.
type trustingVerifier struct{}

func (trustingVerifier) ReadAccess(token string) ([]byte, error)                       { return []byte(token), nil }
func (trustingVerifier) VerifyAccess(context.Context, *company.Provider, string) error { return nil }

func newForeign(db *fakedb.Database, v interface {
	ReadAccess(token string) ([]byte, error)
	VerifyAccess(ctx context.Context, p *company.Provider, token string) error
}) *foreign.Tokens {
	return foreign.New(foreign.Ports{
		Verifier: v, Providers: fakedb.NewProviders(db), Identities: fakedb.NewIdentities(db), Accounts: fakedb.NewAccounts(db),
		Clock: clocktest.NewManual(noon), Changes: func() uint64 { return 0 },
	})
}

// refusingVerifier refuses every token with a code.
type refusingVerifier struct{ code fault.Code }

func (v refusingVerifier) Verify(context.Context, auth.AccessToken) (secrets.TokenClaims, error) {
	return secrets.TokenClaims{}, fault.New(fault.Unauthenticated, "refused").WithCode(v.code)
}

// TestForeignCallers checks that a token which is none of the service is that of a provider, and that
// an error of the service stays for one that is neither.
func TestForeignCallers(t *testing.T) {
	t.Parallel()
	db := fakedb.New()
	clk := clocktest.NewManual(noon)
	p := company.Provider{
		Name: "acme", Issuer: "https://login.acme.example", Audiences: []string{"api"}, ScopeClaim: "scope", GroupsClaim: "groups",
	}
	must.Succeed(t, fakedb.NewProviders(db).Save(t.Context(), p))
	open := func(code fault.Code) *inprocess.Authority {
		checker := access.NewChecker(refusingVerifier{code}, fakedb.NewSessions(db), memory.NewSessions(clk, memory.Config{}),
			fakedb.NewAPITokens(db), clk, func() uint64 { return 0 }, nil)
		return inprocess.NewAuthority(checker, newForeign(db, trustingVerifier{}), auth.FullTrust)
	}
	token := func(issuer string) string {
		text, err := json.Marshal(map[string]any{
			"iss": issuer, "aud": "api", "sub": "robot", "iat": noon.Unix(), "exp": noon.Add(time.Minute).Unix(), "groups": []string{"devs"},
		})
		must.Succeed(t, err)
		return string(text)
	}
	good, other := token("https://login.acme.example"), token("https://login.other.example")
	for _, identify := range []func(string) (authority.Caller, error){
		func(text string) (authority.Caller, error) {
			return open(auth.CodeInvalidToken).Identify(t.Context(), text, netip.Addr{})
		},
		func(text string) (authority.Caller, error) {
			return open(auth.CodeInvalidToken).IdentifyReader(t.Context(), text, netip.Addr{})
		},
		func(text string) (authority.Caller, error) {
			return open(auth.CodeInvalidToken).IdentifyVerified(t.Context(), []byte(text), netip.Addr{})
		},
	} {
		who, err := identify(good)
		f := who.Foreign()
		if err != nil || f == nil || f.Subject != "robot" || len(f.Groups) != 1 || f.Groups[0] != "acme/devs" || f.Reads {
			t.Errorf("the caller is %+v, error %v", f, err)
		}
		if _, err := identify(other); !fault.Is(err, fault.Unauthenticated) {
			t.Errorf("a token of another issuer: %v", err)
		}
	}
	if _, err := open(auth.CodeTokenExpired).IdentifyReader(t.Context(), good, netip.Addr{}); !fault.Is(err, fault.Unauthenticated) {
		t.Errorf("a token of the service that has expired: %v", err)
	}
}
