package access_test

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/memory"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/access"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

const (
	user auth.UserID    = "11111111-2222-4333-8444-555555555555"
	id   auth.SessionID = "33333333-2222-4333-8444-555555555555"
)

// testVerifier reads a token as the ID of its session.
type testVerifier struct {
	user   auth.UserID
	issued *time.Time // optional
}

func (v testVerifier) Verify(_ context.Context, t auth.AccessToken) (secrets.TokenClaims, error) {
	if t == "expired" {
		return secrets.TokenClaims{}, fault.New(fault.Unauthenticated, "expired").WithCode(auth.CodeTokenExpired)
	}
	if t == "publisher" {
		return secrets.TokenClaims{Publisher: &auth.Publisher{Method: "dns", Subject: "example.com"}}, nil
	}
	claims := secrets.TokenClaims{UserID: v.user, SessionID: auth.SessionID(t)}
	if v.issued != nil {
		claims.IssuedAt = *v.issued
	}
	return claims, nil
}

// countingSessions counts reads and writes of sessions.
type countingSessions struct {
	authstore.Sessions
	reads, writes int
}

func (c *countingSessions) Get(ctx context.Context, id auth.SessionID) (auth.Session, error) {
	c.reads++
	return c.Sessions.Get(ctx, id)
}

func (c *countingSessions) Update(ctx context.Context, id auth.SessionID, change func(*auth.Session) error) error {
	c.writes++
	return c.Sessions.Update(ctx, id, change)
}

type fixture struct {
	checker *access.Checker
	store   *countingSessions
	cache   *memory.Sessions
	clock   *clocktest.Manual
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	db, ctx := fakedb.New(), context.Background()
	fx := &fixture{clock: clocktest.NewManual(time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC))}
	fx.store = &countingSessions{Sessions: fakedb.NewSessions(db)}
	fx.cache = memory.NewSessions(fx.clock, memory.Config{})
	fx.checker = access.NewChecker(testVerifier{user: user}, fx.store, fx.cache, fakedb.NewAPITokens(db), fx.clock, func() uint64 { return 0 }, nil)
	must.Succeed(t, fakedb.NewAccounts(db).Create(ctx, auth.Account{ID: user, Email: "a@b.c"}))
	if _, _, err := fakedb.NewDevices(db).Ensure(ctx, auth.Device{ID: "d", UserID: user, Identity: "d"}); err != nil {
		t.Fatal(err)
	}
	err := fx.store.Create(ctx, auth.Session{
		ID: id, UserID: user, DeviceID: "d", TrustLevel: auth.Unverified, CreatedAt: fx.clock.Now(),
		LastActivity: fx.clock.Now(),
		ExpiresAt:    fx.clock.Now().Add(time.Hour), MaxExpiresAt: fx.clock.Now().Add(time.Hour),
	})
	must.Succeed(t, err)
	return fx
}

func wantFault(t *testing.T, what string, err error, code fault.Code) {
	t.Helper()
	if f, ok := fault.As(err); !ok || f.Kind != fault.Unauthenticated || f.Code != code {
		t.Errorf("%s: %v, want fault.Unauthenticated with code %s", what, err, code)
	}
}

func TestCheck(t *testing.T) {
	fx, ctx := newFixture(t), context.Background()
	s, err := fx.checker.Check(ctx, auth.AccessToken(id))
	if err != nil || s.ID != id || s.TrustLevel != auth.Unverified {
		t.Errorf("session %+v, error %v", s, err)
	}
	for token, code := range map[auth.AccessToken]fault.Code{
		"": auth.CodeInvalidToken, "expired": auth.CodeTokenExpired,
		"44444444-2222-4333-8444-555555555555": auth.CodeInvalidToken,
	} {
		_, err := fx.checker.Check(ctx, token)
		wantFault(t, string(token), err, code)
	}
	foreign := access.NewChecker(testVerifier{user: "99999999-2222-4333-8444-555555555555"}, fx.store,
		fx.cache, nil, fx.clock, func() uint64 { return 0 }, nil)
	_, err = foreign.Check(ctx, auth.AccessToken(id))
	wantFault(t, "another person's session", err, auth.CodeInvalidToken)
	fx.clock.Advance(time.Hour)
	_, err = fx.checker.Check(ctx, auth.AccessToken(id))
	wantFault(t, "an expired session", err, auth.CodeTokenExpired)
}

func TestEndedSessionIsRefusedWithinASecond(t *testing.T) {
	fx, ctx := newFixture(t), context.Background()
	if _, err := fx.checker.Check(ctx, auth.AccessToken(id)); err != nil {
		t.Fatal(err)
	}
	// Ended on another instance, which this one does not know.
	if _, err := fx.store.End(ctx, authstore.SessionFilter{UserID: user}, fx.clock.Now(), auth.EndSignOut); err != nil {
		t.Fatal(err)
	}
	fx.clock.Advance(time.Second)
	_, err := fx.checker.Check(ctx, auth.AccessToken(id))
	wantFault(t, "an ended session", err, auth.CodeInvalidToken)
}

func TestSessionsAreCached(t *testing.T) {
	fx, ctx := newFixture(t), context.Background()
	for range 100 {
		if _, err := fx.checker.Check(ctx, auth.AccessToken(id)); err != nil {
			t.Fatal(err)
		}
	}
	if fx.store.reads != 1 || fx.store.writes != 0 {
		t.Errorf("%d reads and %d writes for 100 checks at once, want one read", fx.store.reads, fx.store.writes)
	}
	for range 150 {
		fx.clock.Advance(time.Second)
		if _, err := fx.checker.Check(ctx, auth.AccessToken(id)); err != nil {
			t.Fatal(err)
		}
	}
	if fx.store.writes != 2 {
		t.Errorf("%d writes in 150 seconds, want one a minute", fx.store.writes)
	}
	if s, err := fx.store.Sessions.Get(ctx, id); err != nil || fx.clock.Now().Sub(s.LastActivity) > time.Minute {
		t.Errorf("last activity %s at %s, error %v", s.LastActivity, fx.clock.Now(), err)
	}
}

func TestCheckLevel(t *testing.T) {
	fx, ctx := newFixture(t), context.Background()
	if s, err := fx.checker.CheckLevel(ctx, auth.AccessToken(id), auth.Unverified); err != nil || s.ID != id {
		t.Errorf("the same level: session %+v, error %v", s, err)
	}
	if s, err := fx.checker.CheckLevel(ctx, auth.AccessToken(id),
		auth.FullTrust); !fault.Is(err, fault.Forbidden) || s.ID != id {
		t.Errorf("a higher level: session %+v, error %v", s, err)
	}
	_, err := fx.checker.CheckLevel(ctx, "expired", auth.Unverified)
	wantFault(t, "an expired token", err, auth.CodeTokenExpired)
}

// TestStoredSessionDecidesBeforeRefusal checks that a step-up or the end of a session on another
// instance, which this one does not know, counts before a request is refused.
func TestStoredSessionDecidesBeforeRefusal(t *testing.T) {
	fx, ctx := newFixture(t), context.Background()
	if _, err := fx.checker.Check(ctx, auth.AccessToken(id)); err != nil { // now there is a copy
		t.Fatal(err)
	}
	raise := func(s *auth.Session) error { s.TrustLevel = auth.FullTrust; return nil }
	must.Succeed(t, fx.store.Sessions.Update(ctx, id, raise))
	s, err := fx.checker.CheckLevel(ctx, auth.AccessToken(id), auth.FullTrust)
	if err != nil || s.TrustLevel != auth.FullTrust {
		t.Errorf("after a step-up elsewhere: session %+v, error %v", s, err)
	}
	if s, err := fx.checker.Check(ctx, auth.AccessToken(id)); err != nil || s.TrustLevel != auth.FullTrust ||
		fx.store.reads != 2 {
		t.Errorf("session %+v, error %v, %d reads: the copy has not the new level", s, err, fx.store.reads)
	}
	lower := func(s *auth.Session) error { s.TrustLevel = auth.Unverified; return nil }
	must.Succeed(t, fx.store.Sessions.Update(ctx, id, lower))
	fx.clock.Advance(time.Second)
	if _, err := fx.checker.Check(ctx, auth.AccessToken(id)); err != nil {
		t.Fatal(err)
	}
	if _, err := fx.store.End(ctx, authstore.SessionFilter{UserID: user}, fx.clock.Now(), auth.EndSignOut); err != nil {
		t.Fatal(err)
	}
	_, err = fx.checker.CheckLevel(ctx, auth.AccessToken(id), auth.FullTrust)
	wantFault(t, "a session that ended elsewhere", err, auth.CodeInvalidToken)
}

func TestPublisherHasNoSession(t *testing.T) {
	fx, ctx := newFixture(t), context.Background()
	got, err := fx.checker.Identify(ctx, "publisher", netip.Addr{})
	if err != nil || got.Publisher == nil || got.Publisher.Subject != "example.com" || got.Session.ID != "" {
		t.Errorf("Identify = %+v, %v, want the publisher", got, err)
	}
	s, err := fx.checker.Check(ctx, "publisher")
	wantFault(t, "the token of a publisher", err, auth.CodeInvalidToken)
	if s.ID != "" || fx.store.reads != 0 {
		t.Errorf("session %+v, %d reads", s, fx.store.reads)
	}
	got, err = fx.checker.Identify(ctx, auth.AccessToken(id), netip.Addr{})
	if err != nil || got.Publisher != nil || got.Session.ID != id {
		t.Errorf("Identify of a session = %+v, %v", got, err)
	}
}

// TestClockThatWasAhead checks what an instance has written whose clock was an hour ahead, and then
// set right: its last activity becomes the present time, and its token has expired.
func TestClockThatWasAhead(t *testing.T) {
	fx, ctx := newFixture(t), context.Background()
	ahead := fx.clock.Now().Add(time.Hour)
	must.Succeed(t, fx.store.Update(ctx, id, func(s *auth.Session) error { s.LastActivity = ahead; return nil }))
	if s, err := fx.checker.Check(ctx, auth.AccessToken(id)); err != nil || !s.LastActivity.Equal(fx.clock.Now()) {
		t.Errorf("the last activity is %s at %s, error %v", s.LastActivity, fx.clock.Now(), err)
	}
	for after, code := range map[time.Duration]fault.Code{
		auth.ClockTolerance: "", auth.ClockTolerance + time.Second: auth.CodeTokenExpired,
		time.Hour: auth.CodeTokenExpired,
	} {
		issued := fx.clock.Now().Add(after)
		checker := access.NewChecker(testVerifier{user, &issued}, fx.store, fx.cache, nil, fx.clock, func() uint64 { return 0 }, nil)
		_, err := checker.Check(ctx, auth.AccessToken(id))
		f, refused := fault.As(err)
		if refused != (code != "") || refused && f.Code != code {
			t.Errorf("issued %s ahead: %v, want %q", after, err, code)
		}
	}
}
