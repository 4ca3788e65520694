package inprocess_test

import (
	"context"
	"crypto/rand"
	"net/netip"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/inprocess"
	"github.com/tollgate-dev/tollgate/adapters/memory"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/access"
	"github.com/tollgate-dev/tollgate/core/auth/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/test/fakedb"
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

func newAuthority(t *testing.T) (*inprocess.Authority, *fakedb.AuditLog) {
	t.Helper()
	db, ctx := fakedb.New(), context.Background()
	sessions, log := fakedb.NewSessions(db), fakedb.NewAuditLog(db)
	if err := fakedb.NewAccounts(db).Create(ctx, auth.Account{ID: "anna", Email: "anna"}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := fakedb.NewDevices(db).Ensure(ctx, auth.Device{ID: "d", UserID: "anna", Identity: "d"}); err != nil {
		t.Fatal(err)
	}
	err := sessions.Create(ctx, auth.Session{
		ID: "anna", UserID: "anna", DeviceID: "d", TrustLevel: auth.LimitedTrust, IPAddress: netip.MustParseAddr("203.0.113.7"),
		CreatedAt: noon, LastActivity: noon, ExpiresAt: noon.Add(time.Hour),
	})
	if err != nil {
		t.Fatal(err)
	}
	checker := access.NewChecker(echoVerifier{}, sessions, memory.NewSessions(clocktest.NewManual(noon), memory.Config{}), clocktest.NewManual(noon))
	return inprocess.NewAuthority(checker, audit.New(log, clocktest.NewManual(noon), randomSource{}), auth.FullTrust), log
}

func TestIdentify(t *testing.T) {
	a, _ := newAuthority(t)
	c, err := a.Identify(context.Background(), "anna")
	want := authority.Caller{UserID: "anna", SessionID: "anna", TrustLevel: "LIMITED_TRUST", Address: netip.MustParseAddr("203.0.113.7")}
	if err != nil || c != want {
		t.Errorf("caller %+v, error %v; want %+v", c, err, want)
	}
	for _, token := range []string{"", "unknown"} {
		if _, err := a.Identify(context.Background(), token); !fault.Is(err, fault.Unauthenticated) {
			t.Errorf("token %q: %v, want fault.Unauthenticated", token, err)
		}
	}
}

func TestRequireTrust(t *testing.T) {
	a, _ := newAuthority(t)
	for level, ok := range map[string]bool{
		"FULL_TRUST": true, "LIMITED_TRUST": false, "UNVERIFIED": false, "HIGH_RISK": false, "": false, "ROOT": false,
	} {
		err := a.RequireTrust(context.Background(), authority.Caller{TrustLevel: level})
		if ok != (err == nil) {
			t.Errorf("%q: %v", level, err)
		}
		if f, is := fault.As(err); !ok && (!is || f.Kind != fault.Forbidden || f.Details["challenge"] == nil) {
			t.Errorf("%q: %v, want fault.Forbidden with a challenge", level, err)
		}
	}
}

// TestRequireVerified checks that only HIGH_RISK, and what is no level, may not read what is not public.
func TestRequireVerified(t *testing.T) {
	a, _ := newAuthority(t)
	for level, ok := range map[string]bool{
		"FULL_TRUST": true, "LIMITED_TRUST": true, "UNVERIFIED": true, "HIGH_RISK": false, "": false, "ROOT": false,
	} {
		if err := a.RequireVerified(context.Background(), authority.Caller{TrustLevel: level}); ok != (err == nil) || err != nil && !fault.Is(err, fault.Forbidden) {
			t.Errorf("%q: %v", level, err)
		}
	}
}

func TestRecord(t *testing.T) {
	a, log := newAuthority(t)
	ctx, caller := context.Background(), authority.Caller{UserID: "anna", SessionID: "s", TrustLevel: "FULL_TRUST"}
	for _, act := range []authority.Act{
		{Caller: caller, Action: "publish", ServerName: "com.example/a", Version: "1.0.0"},
		{Caller: caller, Action: "edit", ServerName: "com.example/a", Reason: "no grant"},
		{Caller: caller, Action: "warned", ServerName: "com.example/a", Warning: "packages not checked out"},
	} {
		if err := a.Record(ctx, act); err != nil {
			t.Fatal(err)
		}
		events, _, err := log.Search(ctx, authstore.AuditQuery{UserID: "anna", Type: auth.RegistryChange, Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, e := range events {
			if e.Details["action"] != act.Action {
				continue
			}
			found = true
			_, versioned := e.Details["version"]
			_, refused := e.Details["reason"]
			warning, _ := e.Details["warning"].(string)
			if e.Success != (act.Reason == "") || versioned != (act.Version != "") || refused != (act.Reason != "") ||
				e.Details["userId"] != "anna" || e.Details["sessionId"] != "s" || e.Details["trustLevel"] != "FULL_TRUST" ||
				e.Details["serverName"] != "com.example/a" || warning != act.Warning {
				t.Errorf("the event %+v does not describe the act %+v", e, act)
			}
		}
		if !found {
			t.Errorf("no event for the act %+v", act)
		}
	}
}
