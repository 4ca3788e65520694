package inprocess_test

import (
	"context"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/inprocess"
	"github.com/tollgate-dev/tollgate/adapters/memory"
	"github.com/tollgate-dev/tollgate/core/auth"
	authaccess "github.com/tollgate-dev/tollgate/core/auth/access"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/scope"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/authorization"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/management"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

const (
	toolURL      = "https://tools.example.com/mcp"
	tollgateURL  = "https://tollgate.example.com"
	documentURL  = "https://vscode.example/client.json"
	grantedToken = "header.payload.signature"
)

// issued verifies every token as one that was issued for an application of anna.
type issued struct {
	authorization.Families
	management.Store[oauth.ClientID, oauth.Client]

	claims oauth.Claims
	family oauth.Family
}

func (i *issued) Verify(context.Context, auth.AccessToken) (secrets.TokenClaims, error) {
	claims := i.claims
	return secrets.TokenClaims{UserID: "anna", SessionID: i.family.SessionID, Granted: &claims}, nil
}

func (i *issued) Get(context.Context, oauth.FamilyID) (oauth.Family, error) { return i.family, nil }

// declared is one resource.
type declared struct {
	management.Store[oauth.ResourceName, oauth.Resource]
}

func (declared) List(context.Context, oauth.ResourceName, int) ([]oauth.Resource, error) {
	name, err := registry.ParseName("com.example/weather")
	return []oauth.Resource{{Name: "tools", URL: toolURL, Servers: []registry.Name{name}}}, err
}

// newApplication returns an authority for whom all tokens are those of an application, for a resource with
// scopes and at a level, in a session at another level; 0 for one of an assertion.
func newApplication(t *testing.T, i *issued, live auth.TrustLevel) *inprocess.Authority {
	t.Helper()
	db, ctx, clk := fakedb.New(), t.Context(), clocktest.NewManual(noon)
	accounts, sessions := fakedb.NewAccounts(db), fakedb.NewSessions(db)
	must.Succeed(t, accounts.Create(ctx, auth.Account{ID: "anna", Email: "anna", State: auth.AccountActive}))
	i.family = oauth.Family{
		ID: "f", UserID: "anna", Client: documentURL, Level: i.claims.Level, ExpiresAt: noon.Add(time.Hour), Groups: i.family.Groups,
	}
	i.claims.Family, i.claims.Client = "f", documentURL
	if live != 0 {
		_, _, err := fakedb.NewDevices(db).Ensure(ctx, auth.Device{ID: "d", UserID: "anna", Identity: "d"})
		must.Succeed(t, err)
		must.Succeed(t, sessions.Create(ctx, auth.Session{
			ID: "s", UserID: "anna", DeviceID: "d", TrustLevel: live, CreatedAt: noon, LastActivity: noon, ExpiresAt: noon.Add(time.Hour),
		}))
		i.family.SessionID = "s"
	}
	none := func() uint64 { return 0 }
	checker := authaccess.NewChecker(i, sessions, memory.NewSessions(clk, memory.Config{}), fakedb.NewAPITokens(db), clk, none,
		authaccess.NewIssued(authaccess.IssuedPorts{
			Issuer: tollgateURL, Families: i, Resources: declared{}, Accounts: accounts, Clock: clk, Changes: none,
			Admits: func(oauth.ClientID) bool { return true },
		}))
	return inprocess.NewAuthority(checker, newForeign(db, noVerifier{}), auth.FullTrust)
}

// TestTokenForToolServer checks that it is good for decisions only: elsewhere it is 401.
func TestTokenForToolServer(t *testing.T) {
	a := newApplication(t, &issued{claims: oauth.Claims{Resource: toolURL, Level: auth.FullTrust, Scopes: []string{oauth.ScopeWrite}}}, auth.LimitedTrust)
	from := netip.MustParseAddr("203.0.113.8")
	for name, identify := range map[string]func(context.Context, string, netip.Addr) (authority.Caller, error){
		"a write": a.Identify, "a read": a.IdentifyReader,
	} {
		c, err := identify(t.Context(), grantedToken, from)
		if f, _ := fault.As(err); f == nil || f.Kind != fault.Unauthenticated || f.Code != auth.CodeInvalidToken || c.IsRemote() {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
	c, err := a.IdentifyCall(t.Context(), grantedToken, from)
	must.Succeed(t, err)
	g := c.Granted()
	id, level := c.Session()
	if g == nil || g.Client != documentURL || g.Resource == nil || g.Resource.URL != toolURL || len(g.Resource.Servers) != 1 ||
		g.Groups != nil || id != "s" || level != "LIMITED_TRUST" || c.Address() != from || c.Actor().Who != "person:anna" {
		t.Errorf("the caller of a tool server is %+v (%+v)", c, g)
	}
	for name, err := range map[string]error{
		"Person": second(c.Person()), "MayRead": c.MayRead(), "RequireReader": second(c.RequireReader()),
		"RequireWriter": second(c.RequireWriter()), "RequireFullTrust": second(c.RequireFullTrust()),
		"RequireScope": c.RequireScope(scope.Read, scope.Decide), "RequireAction": c.RequireAction(registry.ActionPublish),
	} {
		if err == nil {
			t.Errorf("%s: it may act here", name)
		}
	}
}

func second(_ registry.Holder, err error) error { return err }

// TestTokenForRegistry checks what an application may do here: the scopes of its token, at the level that the
// token carries, or the live one if that is lower.
func TestTokenForRegistry(t *testing.T) {
	read, write := []string{oauth.ScopeRead}, []string{oauth.ScopeWrite, "admin:write"}
	full, low := auth.FullTrust, auth.LimitedTrust
	for name, c := range map[string]struct {
		scopes                 []string
		level, live            auth.TrustLevel
		reads, acts, publishes bool
	}{
		"read":                       {read, full, full, true, false, false},
		"write":                      {write, full, full, false, true, true},
		"both":                       {append(read, write...), full, full, true, true, true},
		"none":                       {nil, full, full, false, false, false},
		"write, little trust":        {write, low, full, false, true, false},
		"write, less trust now":      {write, full, low, false, true, false},
		"read at high risk":          {read, full, auth.HighRisk, false, false, false},
		"an assertion that reads":    {read, low, 0, true, false, false},
		"an assertion without trust": {read, auth.HighRisk, 0, false, false, false},
	} {
		a := newApplication(t, &issued{claims: oauth.Claims{Resource: tollgateURL + "/", Level: c.level, Scopes: c.scopes}}, c.live)
		if _, err := a.IdentifyCall(t.Context(), grantedToken, netip.Addr{}); !fault.Is(err, fault.Unauthenticated) {
			t.Errorf("%s: at a tool server: %v", name, err)
		}
		who, err := a.Identify(t.Context(), grantedToken, netip.Addr{})
		must.Succeed(t, err)
		holder, err := who.Person()
		if err != nil || holder != "anna" || !who.IsToken() || who.IsOperator() {
			t.Errorf("%s: the caller is %+v, %v", name, who, err)
		}
		_, low := who.RequireWriter()
		if got := who.MayRead() == nil; got != c.reads {
			t.Errorf("%s: it may read: %v", name, who.MayRead())
		}
		if got := who.RequireAction(registry.ActionPublish) == nil; got != c.acts || who.Allows(registry.ActionEdit) != c.acts ||
			(got && low == nil) != c.publishes {
			t.Errorf("%s: it may publish: %v, %v", name, who.RequireAction(registry.ActionPublish), low)
		}
		for _, other := range []scope.Scope{scope.Admin, scope.AdminRead, scope.Review, scope.Audit, scope.Decide} {
			if f, _ := fault.As(who.RequireScope(other)); f == nil || f.Code != scope.CodeInsufficient {
				t.Errorf("%s: it has %s", name, other)
			}
		}
		if authority.RefuseToken(authority.GivenBy(t.Context(), who), "give") == nil {
			t.Errorf("%s: it may give", name)
		}
		act := authority.Act{Caller: who, Action: "publish", ServerName: "com.example/a"}
		if d := act.Change().Details; d.Text("client") != documentURL || d.Text("userId") != "anna" {
			t.Errorf("%s: the event is %v", name, d)
		}
	}
}

// TestGroupsOfAssertion checks that a decision gets the groups of an assertion.
func TestGroupsOfAssertion(t *testing.T) {
	i := &issued{claims: oauth.Claims{Resource: toolURL, Level: auth.Unverified}, family: oauth.Family{Groups: []string{"acme/devs"}}}
	c, err := newApplication(t, i, 0).IdentifyCall(t.Context(), grantedToken, netip.Addr{})
	must.Succeed(t, err)
	if _, level := c.Session(); !slices.Equal(c.Granted().Groups, i.family.Groups) || level != "UNVERIFIED" {
		t.Errorf("%+v at %s", c.Granted(), level)
	}
}
