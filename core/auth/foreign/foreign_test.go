package foreign_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/auth/foreign"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

var noon = time.Date(2026, time.November, 27, 12, 0, 0, 0, time.UTC)

const issuer = "https://login.acme.example"

// site is what Tokens know the world by. A token is its payload.
type site struct {
	*foreign.Tokens
	authstore.Providers

	t          *testing.T
	clock      *clocktest.Manual
	identities *fakedb.Identities
	accounts   *fakedb.Accounts
	failure    error // of the database
	keys       error // of the verification
	reads      int   // of the providers
	verified   int   // tokens
	changes    uint64
}

func newSite(t *testing.T) *site {
	t.Helper()
	db := fakedb.New()
	s := &site{
		Providers: fakedb.NewProviders(db), t: t, clock: clocktest.NewManual(noon), identities: fakedb.NewIdentities(db),
		accounts: fakedb.NewAccounts(db),
	}
	s.Tokens = foreign.New(foreign.Ports{
		Verifier: s, Providers: s, Identities: s.identities, Accounts: s.accounts, Clock: s.clock,
		Changes: func() uint64 { return s.changes },
	})
	s.save("acme")
	return s
}

// save stores a provider, with changes.
func (s *site) save(name string, changes ...func(*company.Provider)) {
	s.t.Helper()
	p := company.Provider{
		Name: company.Name(name), Issuer: issuer, Audiences: []string{"api"}, GroupsClaim: "groups", ScopeClaim: "scope",
	}
	for _, change := range changes {
		change(&p)
	}
	s.must(s.Save(s.t.Context(), p))
}

func (s *site) must(err error) {
	s.t.Helper()
	must.Succeed(s.t, err)
}

// List implements [authstore.Providers].
func (s *site) List(ctx context.Context) ([]company.Provider, error) {
	s.reads++
	if s.failure != nil {
		return nil, s.failure
	}
	return s.Providers.List(ctx)
}

// ReadAccess implements identity.AccessTokens.
func (*site) ReadAccess(token string) ([]byte, error) { return []byte(token), nil }

// VerifyAccess implements identity.AccessTokens.
func (s *site) VerifyAccess(context.Context, *company.Provider, string) error {
	s.verified++
	return s.keys
}

// token returns a token with changed claims.
func (s *site) token(changes ...any) string {
	s.t.Helper()
	now := s.clock.Now()
	claims := map[string]any{
		"iss": issuer, "aud": "api", "sub": "u1", "iat": now.Unix(), "exp": now.Add(time.Hour).Unix(), "groups": []string{"devs"},
		"scope": "mcp-registry:read",
	}
	for i := 0; i < len(changes); i += 2 {
		maps.Copy(claims, map[string]any{changes[i].(string): changes[i+1]})
	}
	text, err := json.Marshal(claims)
	s.must(err)
	return string(text)
}

func (s *site) link(confirmed time.Time) {
	s.t.Helper()
	ctx := s.t.Context()
	s.must(s.accounts.Create(ctx, auth.Account{ID: "ada", Email: "ada@example.com", State: auth.AccountActive}))
	s.must(s.identities.Add(ctx, company.Identity{
		ID: "i", UserID: "ada", Issuer: issuer, Subject: "u1", LinkedAt: noon, ConfirmedAt: confirmed,
		Membership: company.Membership{Provider: "acme", Groups: []string{"staff"}},
	}))
}

// want identifies a token a second later, and checks whose it is; kind is that of the error.
func (s *site) want(what, token, holder, groups string, kind fault.Kind) *authority.Foreign {
	s.t.Helper()
	s.clock.Advance(time.Second)
	owner, err := s.Identify(s.t.Context(), token)
	switch {
	case err != nil && fault.KindOf(err) != kind, err == nil && kind != 0:
		s.t.Errorf("%s: error %v, want the kind %v", what, err, kind)
	case err == nil && (owner.Holder != holder || fmt.Sprint(owner.Groups) != groups):
		s.t.Errorf("%s: the owner is %+v, want %q in %s", what, owner, holder, groups)
	}
	return owner
}

func TestOwners(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	token := s.token()
	if got := s.want("nobody", token, "", "[acme/devs]", 0); !got.Reads || got.Issuer != issuer || got.Subject != "u1" {
		t.Errorf("the owner is %+v", got)
	}
	s.link(noon)
	s.want("linked", token, "ada", "[acme/devs]", 0)
	s.want("without groups", s.token("groups", nil), "ada", "[acme/staff]", 0)
	s.want("another subject", s.token("sub", "u2"), "", "[acme/devs]", 0)
	s.want("groups that are an object", s.token("sub", "u2", "groups", map[string]any{"devs": 1}), "", "[]", 0)
	if got := s.want("no scope", s.token("scope", "openid"), "ada", "[acme/devs]", 0); got.Reads {
		t.Error("a token without the scope reads")
	}
	s.want("another issuer", s.token("iss", "https://x.example"), "", "", fault.NotFound)
	s.want("another audience", s.token("aud", "x"), "", "", fault.Unauthenticated)
	s.want("expired", s.token("exp", noon.Unix()-120), "", "", fault.Unauthenticated)
	s.keys = company.Reject("signature", "it is not signed")
	s.want("not signed", s.token("jti", "1"), "", "", fault.Unauthenticated)
	s.keys = fault.New(fault.Unavailable, company.ProblemAway)
	s.want("the provider is away", s.token("jti", "2"), "", "", fault.Unavailable)
	s.want("it was verified before", token, "ada", "[acme/devs]", 0)
}

// TestLeavers checks that the end of a person, at the provider or here, ends a token within a second.
func TestLeavers(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	ctx, token := t.Context(), s.token("groups", nil)
	s.link(noon)
	s.want("linked", token, "ada", "[acme/staff]", 0)
	s.must(s.identities.Confirm(ctx, "i", time.Time{}, nil))
	s.want("refused by the provider", token, "", "", fault.Unauthenticated)
	s.must(s.identities.Confirm(ctx, "i", noon, nil))
	s.want("confirmed again", token, "ada", "[acme/staff]", 0)
	for _, state := range []auth.AccountState{auth.AccountDisabled, auth.AccountLocked} {
		set := func(to auth.AccountState) {
			s.must(s.accounts.Update(ctx, "ada", func(a *auth.Account) error { a.State = to; return nil }))
		}
		set(state)
		s.want(fmt.Sprint("the account is ", state), token, "", "", fault.Unauthenticated)
		set(auth.AccountActive)
		s.want("active again", token, "ada", "[acme/staff]", 0)
	}
	required := func(groups ...string) func(*company.Provider) {
		return func(p *company.Provider) { p.RequiredGroups = groups }
	}
	s.save("acme", required("staff"))
	s.want("in a required group, as it was stored", token, "ada", "[acme/staff]", 0)
	s.want("in no required group, as the token says", s.token(), "", "", fault.Unauthenticated)
	s.want("nobody in no required group", s.token("sub", "u2"), "", "", fault.Unauthenticated)
	s.want("nobody in a required group", s.token("sub", "u2", "groups", "staff"), "", "[acme/staff]", 0)
	s.save("acme", required("ops"))
	s.want("another group is required", token, "", "", fault.Unauthenticated)
}

// TestChangesOfProviders checks that what an operator changes ends a token that was verified within a
// second, and that it is not verified again without a change.
func TestChangesOfProviders(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	token := s.token()
	for range 3 {
		s.want("nothing has changed", token, "", "[acme/devs]", 0)
	}
	if s.verified != 1 {
		t.Errorf("it was verified %d times", s.verified)
	}
	s.save("acme", func(p *company.Provider) { p.Audiences = []string{"other"} })
	s.want("other audiences", token, "", "", fault.Unauthenticated)
	s.save("acme", func(p *company.Provider) { p.Audiences = nil })
	s.want("no audiences", token, "", "", fault.NotFound)
	s.save("acme", func(p *company.Provider) { p.ScopeClaim, p.GroupsClaim = "scp", "roles" })
	if got := s.want("other claims", token, "", "[]", 0); got.Reads {
		t.Error("it reads by a claim that is not that of the scopes now")
	}
	s.save("acme", func(p *company.Provider) { p.Issuer = "https://x.example" })
	s.want("another issuer", token, "", "", fault.NotFound)
	s.save("acme")
	s.want("as before", token, "", "[acme/devs]", 0)
	s.must(s.Remove(t.Context(), "acme"))
	s.want("removed", token, "", "", fault.NotFound)
	s.save("second")
	s.want("another provider of the issuer", token, "", "[second/devs]", 0)
}

// TestRecent checks that a token that was seen less than a second ago is answered from memory, and none
// after that; and that the database is read again after it was away.
func TestRecent(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	token := s.token()
	if s.Recent(token) != nil {
		t.Error("a token is known that was never seen")
	}
	owner, err := s.Identify(t.Context(), token)
	s.must(err)
	s.clock.Advance(900 * time.Millisecond)
	reads := s.reads
	s.failure = fault.New(fault.Unavailable, "away")
	if got := s.Recent(token); got != owner || s.reads != reads {
		t.Errorf("the owner is %p, want %p, with %d reads", got, owner, s.reads-reads)
	}
	if s.Recent(s.token("sub", "u2")) != nil {
		t.Error("another token is known")
	}
	s.clock.Advance(time.Millisecond)
	if s.Recent(token) != nil {
		t.Error("it is known for longer than a second")
	}
	s.want("the database is away", token, "", "", fault.Unavailable)
	s.failure = nil
	s.want("it is back", token, "", "[acme/devs]", 0)
	if s.changes++; s.Recent(token) != nil {
		t.Error("it is known after a change by this process")
	}
	s.want("after a change", token, "", "[acme/devs]", 0)
	if s.Recent(token) == nil {
		t.Error("it is not known again")
	}
	s.clock.Advance(-time.Hour)
	if s.Recent(token) != nil {
		t.Error("it is known by a clock that was set back")
	}
}

// TestVerifiedFor checks that a token counts as verified until it ends, and for 5 minutes at most.
func TestVerifiedFor(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, test := range []struct {
		life, passed time.Duration
		again        bool
	}{
		{time.Hour, 4*time.Minute + 59*time.Second, false}, {time.Hour, 5 * time.Minute, true},
		{2 * time.Minute, 119 * time.Second, false}, {2 * time.Minute, 2 * time.Minute, true},
	} {
		token := s.token("exp", s.clock.Now().Add(test.life).Unix(), "jti", fmt.Sprint(test))
		_, err := s.Identify(t.Context(), token)
		s.must(err)
		before := s.verified
		s.clock.Advance(test.passed)
		_, err = s.Identify(t.Context(), token)
		s.must(err)
		if again := s.verified > before; again != test.again {
			t.Errorf("a token of %v is verified again after %v: %t", test.life, test.passed, again)
		}
	}
	token := s.token("exp", s.clock.Now().Add(time.Minute).Unix(), "jti", "ends")
	s.want("it is good", token, "", "[acme/devs]", 0)
	s.clock.Advance(2 * time.Minute)
	s.want("it has ended", token, "", "", fault.Unauthenticated)
}

// TestBoundedMemory verifies many large tokens: the first ones are forgotten, and none is refused.
func TestBoundedMemory(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	long := make([]byte, 15<<10)
	for i := range long {
		long[i] = 'x'
	}
	text := func(n int) string { return s.token("jti", n, "x", string(long)) }
	const enough = 2*(8<<20)/(15<<10) + 2
	for n := range enough {
		_, err := s.Identify(t.Context(), text(n))
		s.must(err)
	}
	before := s.verified
	s.clock.Advance(time.Second)
	_, err := s.Identify(t.Context(), text(0))
	s.must(err)
	if s.verified == before {
		t.Error("the first of many tokens is kept")
	}
}

func TestIdentifyVerified(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.save("plain", func(p *company.Provider) { p.Issuer, p.Audiences = "https://login.plain.example", nil })
	s.link(noon)
	for _, test := range []struct {
		what, payload, holder, groups string
		kind                          fault.Kind
	}{
		{"linked", s.token("aud", "x"), "ada", "[acme/devs]", 0},
		{"nobody", s.token("sub", "u2"), "", "[acme/devs]", 0},
		{"without audiences", s.token("iss", "https://login.plain.example"), "", "[plain/devs]", 0},
		{"another issuer", s.token("iss", "https://x.example"), "", "", fault.NotFound},
		{"expired", s.token("exp", 1), "", "", fault.Unauthenticated},
		{"no object", "[]", "", "", fault.Unauthenticated},
	} {
		owner, err := s.Tokens.IdentifyVerified(t.Context(), []byte(test.payload))
		switch {
		case err != nil && fault.KindOf(err) != test.kind, err == nil && test.kind != 0:
			t.Errorf("%s: error %v", test.what, err)
		case err == nil && (owner.Holder != test.holder || fmt.Sprint(owner.Groups) != test.groups):
			t.Errorf("%s: the owner is %+v", test.what, owner)
		}
	}
	if s.verified != 0 {
		t.Error("a signature was verified")
	}
	payload := s.token("aud", "x")
	s.keys = company.Reject("signature", "it is not signed")
	if _, err := s.Identify(t.Context(), payload); !fault.Is(err, fault.Unauthenticated) || s.Recent(payload) != nil {
		t.Errorf("a payload is taken for a token: %v", err)
	}
}
