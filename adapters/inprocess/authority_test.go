package inprocess_test

import (
	"context"
	"crypto/rand"
	"net/netip"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/inprocess"
	"github.com/tollgate-dev/tollgate/adapters/memory"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/access"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/authority/authoritytest"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

var noon = time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC)

// randomSource fills bytes with random data.
type randomSource struct{}

func (randomSource) Fill(p []byte) { _, _ = rand.Read(p) } // it never returns an error

// echoVerifier accepts every token and returns it as the user id and the session id.
type echoVerifier struct{}

func (echoVerifier) Verify(_ context.Context, t auth.AccessToken) (secrets.TokenClaims, error) {
	return secrets.TokenClaims{UserID: auth.UserID(t), SessionID: auth.SessionID(t)}, nil
}

func newAuthority(t *testing.T, level auth.TrustLevel) *inprocess.Authority {
	t.Helper()
	db, ctx := fakedb.New(), context.Background()
	sessions := fakedb.NewSessions(db)
	must.Succeed(t, fakedb.NewAccounts(db).Create(ctx, auth.Account{ID: "anna", Email: "anna"}))
	if _, _, err := fakedb.NewDevices(db).Ensure(ctx, auth.Device{ID: "d", UserID: "anna", Identity: "d"}); err != nil {
		t.Fatal(err)
	}
	err := sessions.Create(ctx, auth.Session{
		ID: "anna", UserID: "anna", DeviceID: "d", TrustLevel: level, IPAddress: netip.MustParseAddr("203.0.113.7"),
		CreatedAt: noon, LastActivity: noon, ExpiresAt: noon.Add(time.Hour),
	})
	must.Succeed(t, err)
	checker := access.NewChecker(echoVerifier{}, sessions,
		memory.NewSessions(clocktest.NewManual(noon), memory.Config{}), fakedb.NewAPITokens(db),
		clocktest.NewManual(noon), func() uint64 { return 0 }, nil)
	return inprocess.NewAuthority(checker, newForeign(db, noVerifier{}), auth.FullTrust)
}

// TestIdentify checks that a token and a session lead to the same caller, at the address of the
// request.
func TestIdentify(t *testing.T) {
	a, from := newAuthority(t, auth.LimitedTrust), netip.MustParseAddr("203.0.113.8")
	for name, identify := range map[string]func(context.Context, string, netip.Addr) (authority.Caller, error){
		"token": a.Identify, "session": a.IdentifySession,
	} {
		c, err := identify(t.Context(), "anna", from)
		holder, refused := c.Person()
		session, level := c.Session()
		if err != nil || holder != "anna" || refused != nil || session != "anna" || level != "LIMITED_TRUST" ||
			c.Address() != from || c.Publisher() != nil {
			t.Errorf("%s: the caller is %+v, error %v", name, c, err)
		}
		for _, id := range []string{"", "unknown"} {
			if _, err := identify(t.Context(), id, from); !fault.Is(err, fault.Unauthenticated) {
				t.Errorf("%s %q: %v, want fault.Unauthenticated", name, id, err)
			}
		}
	}
}

// TestTrust checks what each trust level permits: only HIGH_RISK may not read what is not public.
func TestTrust(t *testing.T) {
	for level, may := range map[auth.TrustLevel]struct{ read, write bool }{
		auth.FullTrust: {true, true}, auth.LimitedTrust: {true, false}, auth.Unverified: {true, false},
		auth.HighRisk: {},
	} {
		c, err := newAuthority(t, level).Identify(t.Context(), "anna", netip.Addr{})
		must.Succeed(t, err)
		for name, check := range map[string]struct {
			require func() (registry.Holder, error)
			may     bool
		}{
			"read": {c.RequireReader, may.read}, "write": {c.RequireWriter, may.write}, "full trust": {
				func() (registry.Holder, error) { return c.RequireFullTrust() }, may.write,
			},
		} {
			_, err := check.require()
			if f, is := fault.As(err); check.may != (err == nil) ||
				is && (f.Kind != fault.Forbidden || f.Details["challenge"] == nil) {
				t.Errorf("%s at %s: %v", name, level, err)
			}
		}
	}
}

func TestRecord(t *testing.T) {
	log := fakedb.NewAuditLog(fakedb.New())
	a := inprocess.NewActs(auditing.New(log, clocktest.NewManual(noon), randomSource{}))
	ctx, caller := context.Background(), authoritytest.Person("anna")
	for _, act := range []authority.Act{
		{Caller: caller, Action: "publish", ServerName: "com.example/a", Version: "1.0.0"},
		{Caller: caller, Action: "edit", ServerName: "com.example/a", Reason: "no grant"},
		{Caller: caller, Action: "warned", ServerName: "com.example/a", Warning: "packages not checked out"},
	} {
		must.Succeed(t, a.Record(ctx, act))
		events, _, err := log.Search(ctx, authstore.AuditQuery{
			Subject: "anna", Category: audit.RegistryChange, Limit: 10,
		})
		must.Succeed(t, err)
		found := false
		for _, e := range events {
			if e.Action() != act.Action {
				continue
			}
			found = true
			_, versioned := e.Details["version"]
			_, refused := e.Details["reason"]
			warning := e.Details.Text("warning")
			if e.Success != (act.Reason == "") || versioned != (act.Version != "") || refused != (act.Reason != "") ||
				e.Details.Text("userId") != "anna" || e.Details.Text("sessionId") != "anna" ||
				e.Details.Text("trustLevel") != "FULL_TRUST" ||
				e.Details.Text("serverName") != "com.example/a" || warning != act.Warning {
				t.Errorf("the event %+v does not describe the act %+v", e, act)
			}
		}
		if !found {
			t.Errorf("no event for the act %+v", act)
		}
	}
}
