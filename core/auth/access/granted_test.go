package access_test

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/memory"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/access"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authorization"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/management"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

// claimsOf verifies every token as what it is changed to.
type claimsOf struct{ secrets.TokenClaims }

func (c *claimsOf) Verify(context.Context, auth.AccessToken) (secrets.TokenClaims, error) {
	granted := *c.Granted
	claims := c.TokenClaims
	claims.Granted = &granted
	return claims, nil
}

// families are kept in memory.
type families struct {
	authorization.Families
	all   map[oauth.FamilyID]oauth.Family
	reads int
}

func (f *families) Get(_ context.Context, id oauth.FamilyID) (oauth.Family, error) {
	f.reads++
	return get(f.all, id)
}

// objects are those of a kind in memory.
type objects[K ~string, T any] struct {
	management.Store[K, T]
	all map[K]T
}

func (o objects[K, T]) Get(_ context.Context, key K) (T, error) { return get(o.all, key) }

func (o objects[K, T]) List(_ context.Context, after K, _ int) (all []T, err error) {
	for key, one := range o.all {
		if key > after {
			all = append(all, one)
		}
	}
	return all, nil
}

func get[K comparable, T any](all map[K]T, key K) (T, error) {
	one, ok := all[key]
	if !ok {
		return one, fault.New(fault.NotFound, "no such record")
	}
	return one, nil
}

const issuer, toolURL = "https://tollgate.example.com", "https://tools.example.com/mcp"

type grantedFixture struct {
	*access.Checker

	token     *claimsOf
	families  *families
	clients   map[oauth.ClientID]oauth.Client
	resources map[oauth.ResourceName]oauth.Resource
	sessions  *fakedb.Sessions
	accounts  *fakedb.Accounts
	clock     *clocktest.Manual
	changes   uint64
	refused   bool // clients by document
}

func newGrantedFixture(t *testing.T, allListed bool) *grantedFixture {
	t.Helper()
	db, ctx := fakedb.New(), t.Context()
	clk := clocktest.NewManual(time.Date(2026, time.November, 27, 12, 0, 0, 0, time.UTC))
	now := clk.Now()
	fx := &grantedFixture{
		clock: clk, sessions: fakedb.NewSessions(db), accounts: fakedb.NewAccounts(db),
		token: &claimsOf{secrets.TokenClaims{UserID: user, SessionID: id, IssuedAt: now, Granted: &oauth.Claims{
			Family: "f", Client: "vscode", Resource: toolURL, Level: auth.LimitedTrust,
		}}},
		families:  &families{all: map[oauth.FamilyID]oauth.Family{"f": {ID: "f", UserID: user, SessionID: id, Client: "vscode", ExpiresAt: now.Add(time.Hour)}}},
		clients:   map[oauth.ClientID]oauth.Client{"vscode": {ID: "vscode"}},
		resources: map[oauth.ResourceName]oauth.Resource{"tools": {Name: "tools", URL: toolURL + "/"}},
	}
	must.Succeed(t, fx.accounts.Create(ctx, auth.Account{ID: user, Email: "a@b.c", State: auth.AccountActive}))
	_, _, err := fakedb.NewDevices(db).Ensure(ctx, auth.Device{ID: "d", UserID: user, Identity: "d"})
	must.Succeed(t, err)
	must.Succeed(t, fx.sessions.Create(ctx, auth.Session{
		ID: id, UserID: user, DeviceID: "d", TrustLevel: auth.FullTrust, CreatedAt: now, LastActivity: now, ExpiresAt: now.Add(time.Hour),
	}))
	changes := func() uint64 { return fx.changes }
	fx.Checker = access.NewChecker(fx.token, fx.sessions, memory.NewSessions(clk, memory.Config{}), fakedb.NewAPITokens(db), clk, changes,
		access.NewIssued(access.IssuedPorts{
			Issuer: issuer, AllListed: allListed, Families: fx.families, Clients: objects[oauth.ClientID, oauth.Client]{all: fx.clients},
			Resources: objects[oauth.ResourceName, oauth.Resource]{all: fx.resources}, Accounts: fx.accounts, Clock: clk, Changes: changes,
			Admits: func(oauth.ClientID) bool { return !fx.refused },
		}))
	return fx
}

// TestGrantedTokens checks with what a token of the authorization server is good, and that it is no session.
func TestGrantedTokens(t *testing.T) {
	t.Parallel()
	const url oauth.ClientID = "https://vscode.example/client.json"
	assertion := func(fx *grantedFixture) {
		f := fx.families.all["f"]
		fx.token.SessionID, f.SessionID = "", ""
		fx.families.all["f"] = f
	}
	for name, c := range map[string]struct {
		listed bool
		change func(t *testing.T, fx *grantedFixture)
		good   bool
	}{
		"as it was issued": {change: func(*testing.T, *grantedFixture) {}, good: true},
		"no family":        {change: func(_ *testing.T, fx *grantedFixture) { delete(fx.families.all, "f") }},
		"an ended family": {change: func(_ *testing.T, fx *grantedFixture) {
			fx.families.all["f"] = oauth.Family{ID: "f", UserID: user, SessionID: id, Client: "vscode", ExpiresAt: fx.clock.Now().Add(1), EndedAt: fx.clock.Now()}
		}},
		"an expired family":            {change: func(_ *testing.T, fx *grantedFixture) { fx.clock.Advance(time.Hour) }},
		"the family of another person": {change: func(_ *testing.T, fx *grantedFixture) { fx.token.UserID = "other" }},
		"of another session":           {change: func(_ *testing.T, fx *grantedFixture) { fx.token.SessionID = "other" }},
		"without its session":          {change: func(_ *testing.T, fx *grantedFixture) { fx.token.SessionID = "" }},
		"of another client":            {change: func(_ *testing.T, fx *grantedFixture) { fx.token.Granted.Client = "other" }},
		"the client is removed":        {change: func(_ *testing.T, fx *grantedFixture) { delete(fx.clients, "vscode") }},
		"a client by document": {good: true, change: func(_ *testing.T, fx *grantedFixture) {
			f := fx.families.all["f"]
			f.Client, fx.token.Granted.Client = url, url
			fx.families.all["f"] = f
		}},
		"a client by document that is not admitted any more": {change: func(_ *testing.T, fx *grantedFixture) {
			f := fx.families.all["f"]
			f.Client, fx.token.Granted.Client, fx.refused = url, url, true
			fx.families.all["f"] = f
		}},
		"the client may have another resource": {change: func(_ *testing.T, fx *grantedFixture) {
			fx.clients["vscode"] = oauth.Client{ID: "vscode", Resources: []oauth.ResourceName{"x"}}
		}},
		"the resource is for another client": {change: func(_ *testing.T, fx *grantedFixture) {
			fx.resources["tools"] = oauth.Resource{Name: "tools", URL: toolURL, Clients: []oauth.ClientID{url}}
		}},
		"the resource is removed": {change: func(_ *testing.T, fx *grantedFixture) { delete(fx.resources, "tools") }},
		"the resource is not declared, and need not be": {listed: true, good: true, change: func(_ *testing.T, fx *grantedFixture) {
			delete(fx.resources, "tools")
		}},
		"a session that has ended": {change: func(t *testing.T, fx *grantedFixture) {
			must.Succeed(t, fx.sessions.Update(t.Context(), id, func(s *auth.Session) error { s.EndedAt = fx.clock.Now(); return nil }))
		}},
		"an assertion": {good: true, change: func(_ *testing.T, fx *grantedFixture) { assertion(fx) }},
		"an assertion, and the person is disabled": {change: func(t *testing.T, fx *grantedFixture) {
			assertion(fx)
			must.Succeed(t, fx.accounts.Update(t.Context(), user, func(a *auth.Account) error { a.State = auth.AccountDisabled; return nil }))
		}},
	} {
		fx := newGrantedFixture(t, c.listed)
		c.change(t, fx)
		found, err := fx.IdentifyRecent(t.Context(), "token", netip.Addr{})
		if c.good && (err != nil || found.Granted == nil || found.Granted.Claims.Resource != toolURL || found.Granted.Resource == nil) {
			t.Errorf("%s: %+v, %v", name, found, err)
		}
		if !c.good {
			wantFault(t, name, err, auth.CodeInvalidToken)
		}
		if s, err := fx.Check(t.Context(), "token"); err == nil || s.ID != "" {
			t.Errorf("%s: it is the session %+v, %v", name, s, err)
		}
	}
}

// TestGrantedTokenOfTheRegistry checks that a token for this registry has no resource of tool servers, also
// if somebody declares one with its URL.
func TestGrantedTokenOfTheRegistry(t *testing.T) {
	t.Parallel()
	fx := newGrantedFixture(t, true)
	fx.token.Granted.Resource = issuer
	fx.resources["own"] = oauth.Resource{Name: "own", URL: issuer}
	if found, err := fx.Identify(t.Context(), "token", netip.Addr{}); err != nil || found.Granted == nil || found.Granted.Resource != nil {
		t.Errorf("%+v, %v", found, err)
	}
}

// TestGrantedTokenEnds checks that what ends a token holds at once after a change by this process, else within
// a second, and that a token costs no read until then.
func TestGrantedTokenEnds(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*grantedFixture){
		"family":   func(fx *grantedFixture) { delete(fx.families.all, "f") },
		"client":   func(fx *grantedFixture) { delete(fx.clients, "vscode") },
		"resource": func(fx *grantedFixture) { delete(fx.resources, "tools") },
	} {
		for _, own := range []bool{true, false} {
			fx := newGrantedFixture(t, false)
			good := func() bool {
				_, err := fx.IdentifyRecent(t.Context(), "token", netip.Addr{})
				return err == nil
			}
			if first := good(); !first || !good() || fx.families.reads != 1 {
				t.Fatalf("%s: it is not good, or read %d times", name, fx.families.reads)
			}
			end(fx)
			if !good() {
				t.Errorf("%s: a copy is not used", name)
			}
			if own {
				fx.changes++
			} else {
				fx.clock.Advance(time.Second)
			}
			if good() {
				t.Errorf("%s: it is good after its end (own: %v)", name, own)
			}
		}
	}
}

// TestGrantedTokensAreOff checks that their tokens are refused without an authorization server.
func TestGrantedTokensAreOff(t *testing.T) {
	t.Parallel()
	fx := newGrantedFixture(t, false)
	off := access.NewChecker(fx.token, fx.sessions, memory.NewSessions(fx.clock, memory.Config{}), nil, fx.clock, func() uint64 { return 0 }, nil)
	_, err := off.Identify(t.Context(), "token", netip.Addr{})
	wantFault(t, "off", err, auth.CodeInvalidToken)
}
