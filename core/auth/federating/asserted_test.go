package federating

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/auth/people"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/secrets/secretstest"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

// givenGrants are operators who get grants by groups.
type givenGrants struct {
	operators

	given []authority.GrantText
}

func (g *givenGrants) ReplaceGrants(_ context.Context, _, _ string, all []authority.GrantText) (authority.GrantChanges, error) {
	g.given = all
	return authority.GrantChanges{}, nil
}

// TestAssertedPeople checks who the person of an assertion is: never the one of an account with the same
// address, nor one who may not sign in.
func TestAssertedPeople(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		claims  map[string]any
		change  func(*fixture, *company.Provider)
		created bool
		refused company.Verdict
	}{
		"a linked identity":       {map[string]any{"sub": "u1", "email": "bob@example.com"}, nil, false, ""},
		"a new person":            {map[string]any{"sub": "u2", "email": "bob@example.com"}, nil, true, ""},
		"an account there is":     {map[string]any{"sub": "u2", "email": "ada@example.com"}, nil, false, company.Unknown},
		"another domain":          {map[string]any{"sub": "u2", "email": "bob@evil.example"}, nil, false, company.Unknown},
		"an unverified address":   {map[string]any{"sub": "u2", "email": "bob@example.com", "email_verified": false}, nil, false, company.Unknown},
		"no address":              {map[string]any{"sub": "u2"}, nil, false, company.Unknown},
		"no one is made":          {map[string]any{"sub": "u2", "email": "bob@example.com"}, func(_ *fixture, p *company.Provider) { p.Create = false }, false, company.Unknown},
		"not in a group":          {map[string]any{"sub": "u1"}, func(_ *fixture, p *company.Provider) { p.RequiredGroups = []string{"dev"} }, false, company.NoGroup},
		"in a group":              {map[string]any{"sub": "u1", "groups": "dev"}, func(_ *fixture, p *company.Provider) { p.RequiredGroups = []string{"dev"} }, false, ""},
		"in a group that is kept": {map[string]any{"sub": "u1"}, func(_ *fixture, p *company.Provider) { p.RequiredGroups = []string{"kept"} }, false, ""},
		"locked":                  {map[string]any{"sub": "u1"}, setState(auth.AccountLocked), false, company.Locked},
		"disabled":                {map[string]any{"sub": "u1"}, setState(auth.AccountDisabled), false, company.Disabled},
		"invited":                 {map[string]any{"sub": "u1"}, setState(auth.AccountInvited), false, company.Unknown},
		"somebody who has left": {map[string]any{"sub": "u1"}, func(fx *fixture, _ *company.Provider) {
			fx.must(fx.ports.Identities.Confirm(fx.t.Context(), "linked", time.Time{}, nil))
		}, false, company.Unknown},
	} {
		fx := newFixture(t)
		log, entropy := fakedb.NewAuditLog(fx.db), &secretstest.Entropy{}
		grants := &givenGrants{}
		fx.ports.Accounts, fx.ports.Entropy, fx.ports.Grants = fakedb.NewAccounts(fx.db), entropy, grants
		fx.ports.Trail = auditing.New(log, fx.clock, entropy)
		var err error
		fx.ports.People, err = people.New(people.Config{InvitationTTL: time.Hour}, people.Ports{
			Accounts: fx.ports.Accounts, Operators: fakedb.NewDirectory(fx.db), Transaction: fx.db, Trail: fx.ports.Trail, Clock: fx.clock, Entropy: entropy, Root: fx.ports.Root,
		})
		fx.must(err)
		service, err := New(fx.service.config, fx.ports)
		fx.must(err)
		p := &company.Provider{
			Name: "good", Issuer: "https://good", Domains: []string{"example.com"}, Create: true, EmailClaim: "email", GroupsClaim: "groups",
			GroupGrants: []company.GroupGrant{{Group: "dev", Action: "publish", Resource: "com.example/*"}},
		}
		fx.must(fx.ports.Identities.Add(t.Context(), company.Identity{
			ID: "linked", UserID: "ada", Issuer: p.Issuer, Subject: "u1", ConfirmedAt: fx.clock.Now(),
			Membership: company.Membership{Provider: "good", Groups: []string{"kept"}},
		}))
		if c.change != nil {
			c.change(fx, p)
		}
		c.claims["iss"] = p.Issuer
		payload, err := json.Marshal(c.claims)
		fx.must(err)
		claims, err := p.ReadClaims(payload)
		fx.must(err)
		id, err := service.AdmitAsserted(t.Context(), p, &claims)
		if f, ok := fault.As(err); ok != (c.refused != "") || ok && (f.Kind != fault.Forbidden || f.Message != string(c.refused)) {
			t.Errorf("%s: %q, %v", name, id, err)
		}
		if known := id == "ada"; c.refused == "" && known == c.created {
			t.Errorf("%s: the person is %q", name, id)
		}
		events, _, err := log.Search(t.Context(), authstore.AuditQuery{Category: audit.AccountChange, Limit: 10})
		fx.must(err)
		if (len(events) == 2) != c.created || (len(events) > 0) != c.created {
			t.Errorf("%s: recorded: %v", name, events)
		}
		if ada, err := fx.ports.Identities.Of(t.Context(), "ada"); err != nil || len(ada) != 2 {
			t.Errorf("%s: Ada has the identities %v, %v", name, ada, err)
		}
	}
}

func setState(state auth.AccountState) func(*fixture, *company.Provider) {
	return func(fx *fixture, _ *company.Provider) {
		fx.must(fx.ports.Accounts.Update(fx.t.Context(), "ada", func(a *auth.Account) error {
			a.State = state
			return nil
		}))
	}
}

// TestLogoutEndsAssertions checks that a logout at the company ends what came of assertions for the person,
// although there is no session, and nothing of others.
func TestLogoutEndsAssertions(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	fx.ports.Used, fx.ports.Remote, fx.ports.Families = &used{keys: map[string]bool{}}, logoutTokens{}, fakedb.NewFamilies(fx.db)
	service, err := New(fx.service.config, fx.ports)
	fx.must(err)
	now := fx.clock.Now()
	fx.must(fx.ports.Identities.Add(t.Context(), company.Identity{ID: "linked", UserID: "ada", Issuer: "https://good", Subject: "u1"}))
	families := map[oauth.FamilyID]bool{"own": true, "other subject": false, "other provider": false}
	for id := range families {
		f := oauth.Family{ID: id, UserID: "ada", Client: "app", Provider: "good", Subject: "u1", CreatedAt: now, ExpiresAt: now.Add(time.Hour)}
		switch id {
		case "other subject":
			f.Subject = "u2"
		case "other provider":
			f.Provider = "hung"
		}
		fx.must(fx.ports.Families.Add(t.Context(), f))
	}
	token, err := json.Marshal(map[string]any{
		"iss": "https://good", "aud": "", "sub": "u1", "jti": "1", "iat": now.Unix(), "exp": now.Add(time.Minute).Unix(),
		"events": map[string]any{"http://schemas.openid.net/event/backchannel-logout": map[string]any{}},
	})
	must.Succeed(t, err)
	fx.must(service.LogOut(t.Context(), "good", string(token)))
	for id, ended := range families {
		if f, err := fx.ports.Families.Get(t.Context(), id); err != nil || f.Active(now) == ended {
			t.Errorf("%s: %+v, %v", id, f, err)
		}
	}
}

// TestLeaversLoseAssertions checks that what came of assertions ends with an identity that is removed, and with one
// whose provider refuses the person.
func TestLeaversLoseAssertions(t *testing.T) {
	t.Parallel()
	identity := company.Identity{ID: "linked", UserID: "ada", Issuer: "https://good", Subject: "u1"}
	for name, leave := range map[string]func(*Service, []company.Provider) error{
		"removed": func(s *Service, all []company.Provider) error {
			return s.remove(t.Context(), &identity, all, nil)
		},
		"refused": func(s *Service, _ []company.Provider) error {
			return s.withdraw(t.Context(), "good", company.Claims{Issuer: "https://good", Subject: "u1"})
		},
	} {
		fx := newFixture(t)
		fx.ports.Families, fx.ports.Grants, fx.ports.Entropy = fakedb.NewFamilies(fx.db), &givenGrants{}, &secretstest.Entropy{}
		fx.ports.Trail = auditing.New(fakedb.NewAuditLog(fx.db), fx.clock, fx.ports.Entropy)
		service, err := New(fx.service.config, fx.ports)
		fx.must(err)
		now := fx.clock.Now()
		fx.must(fx.ports.Identities.Add(t.Context(), identity))
		fx.must(fx.ports.Families.Add(t.Context(), oauth.Family{
			ID: "f", UserID: "ada", Client: "app", Provider: "good", Subject: "u1", CreatedAt: now, ExpiresAt: now.Add(time.Hour),
		}))
		all, err := fx.ports.Providers.List(t.Context())
		fx.must(err)
		fx.must(leave(service, all))
		if f, err := fx.ports.Families.Get(t.Context(), "f"); err != nil || f.Active(now) {
			t.Errorf("%s: %+v, %v", name, f, err)
		}
	}
}
