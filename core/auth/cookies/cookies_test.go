package cookies_test

import (
	"context"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/memory"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/access"
	"github.com/tollgate-dev/tollgate/core/auth/cookies"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/secrets/secretstest"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

const (
	user auth.UserID    = "11111111-2222-4333-8444-555555555555"
	id   auth.SessionID = "33333333-2222-4333-8444-555555555555"

	day = 24 * time.Hour
)

// tokens are the IDs of their sessions.
type tokens struct{}

func (tokens) Verify(_ context.Context, t auth.AccessToken) (secrets.TokenClaims, error) {
	return secrets.TokenClaims{UserID: user, SessionID: auth.SessionID(t)}, nil
}

// fixture is a session of a week, and two instances.
type fixture struct {
	one, other *cookies.Service
	sessions   *fakedb.Sessions
	cookies    *fakedb.SessionCookies
	cache      *memory.Sessions // of one
	clock      *clocktest.Manual
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	db := fakedb.New()
	fx := &fixture{
		sessions: fakedb.NewSessions(db),
		clock:    clocktest.NewManual(time.Date(2026, time.November, 23, 12, 0, 0, 0, time.UTC)),
	}
	random := &secretstest.Entropy{}
	fx.cookies, fx.cache = fakedb.NewSessionCookies(db), memory.NewSessions(fx.clock, memory.Config{})
	open := func(cache *memory.Sessions) *cookies.Service {
		return cookies.New(cookies.Config{SessionTTL: 7 * day}, cookies.Ports{
			Cookies: fx.cookies, Sessions: fx.sessions,
			Access: access.NewChecker(tokens{}, fx.sessions, cache, nil, fx.clock, func() uint64 { return 0 }, nil),
			Cache:  cache, Clock: fx.clock, Entropy: random,
		})
	}
	fx.one, fx.other = open(fx.cache), open(memory.NewSessions(fx.clock, memory.Config{}))
	must.Succeed(t, fakedb.NewAccounts(db).Create(t.Context(), auth.Account{ID: user, Email: "a@b.c"}))
	if _, _, err := fakedb.NewDevices(db).Ensure(t.Context(), auth.Device{
		ID: "d", UserID: user, Identity: "d",
	}); err != nil {
		t.Fatal(err)
	}
	now := fx.clock.Now()
	err := fx.sessions.Create(t.Context(), auth.Session{
		ID: id, UserID: user, DeviceID: "d", TrustLevel: auth.Unverified, CreatedAt: now, LastActivity: now,
		ExpiresAt: now.Add(7 * day), MaxExpiresAt: now.Add(30 * day),
	})
	must.Succeed(t, err)
	return fx
}

func (fx *fixture) issue(t *testing.T) auth.CookieSecret {
	t.Helper()
	secret, err := fx.one.Issue(t.Context(), cookies.Begun{SessionID: id, UserID: user, TrustLevel: auth.Unverified})
	must.Succeed(t, err)
	return secret
}

func (fx *fixture) change(t *testing.T, change func(*auth.Session)) {
	t.Helper()
	must.Succeed(t, fx.sessions.Update(t.Context(), id, func(s *auth.Session) error { change(s); return nil }))
}

func wantGood(t *testing.T, s *cookies.Service, secret auth.CookieSecret, level auth.TrustLevel) {
	t.Helper()
	if session, err := s.Check(t.Context(), secret); err != nil || session.ID != id || session.TrustLevel != level {
		t.Errorf("Check = %+v, %v", session, err)
	}
}

func wantRefused(t *testing.T, s *cookies.Service, secret auth.CookieSecret) {
	t.Helper()
	if session, err := s.Check(t.Context(), secret); !fault.Is(err, fault.Unauthenticated) {
		t.Errorf("Check = %+v, %v, want fault.Unauthenticated", session, err)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	secret := fx.issue(t)
	if len(secret) != 43 {
		t.Errorf("the secret has %d characters", len(secret))
	}
	wantGood(t, fx.one, secret, auth.Unverified)
	wantGood(t, fx.other, secret, auth.Unverified)
	for _, wrong := range []auth.CookieSecret{"", "x", secret[:42], secret + "x", auth.CookieSecret(id)} {
		wantRefused(t, fx.one, wrong)
	}
	if _, err := fx.one.Issue(t.Context(), cookies.Begun{
		SessionID: id, UserID: user, TrustLevel: auth.Unverified,
	}); !fault.Is(err, fault.Conflict) {
		t.Errorf("Issue of a second cookie returned %v", err)
	}
}

func TestCookieEndsWithItsSession(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*auth.Session, time.Time){
		"signed out": func(s *auth.Session, now time.Time) { s.EndedAt, s.EndReason = now, auth.EndSignOut },
		"expired":    func(s *auth.Session, now time.Time) { s.ExpiresAt = now },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fx := newFixture(t)
			secret := fx.issue(t)
			wantGood(t, fx.other, secret, auth.Unverified)
			fx.change(t, func(s *auth.Session) { end(s, fx.clock.Now()) })
			fx.clock.Advance(time.Second)
			wantRefused(t, fx.other, secret)
			if _, err := fx.other.Rotate(t.Context(), secret); !fault.Is(err, fault.Unauthenticated) {
				t.Errorf("Rotate returned %v", err)
			}
		})
	}
}

func TestRotate(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	old := fx.issue(t)
	wantGood(t, fx.other, old, auth.Unverified) // which keeps a copy of the session
	fx.change(t, func(s *auth.Session) { s.TrustLevel = auth.FullTrust })
	next, err := fx.one.Rotate(t.Context(), old)
	if err != nil || next == old {
		t.Fatalf("Rotate returned %v", err)
	}
	wantGood(t, fx.other, next, auth.FullTrust) // at once, although its copy is older
	wantGood(t, fx.one, next, auth.FullTrust)
	wantRefused(t, fx.one, old)
	wantRefused(t, fx.other, old)
	if _, err := fx.one.Rotate(t.Context(), old); !fault.Is(err, fault.Unauthenticated) {
		t.Errorf("a second Rotate returned %v", err)
	}
	if _, err := fx.one.Rotate(t.Context(), ""); !fault.Is(err, fault.Unauthenticated) {
		t.Errorf("Rotate of no cookie returned %v", err)
	}
}

func TestChangeOfTrustEndsTheCookie(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	secret := fx.issue(t)
	fx.change(t, func(s *auth.Session) { s.TrustLevel = auth.FullTrust })
	fx.clock.Advance(time.Second)
	wantRefused(t, fx.one, secret)
	wantRefused(t, fx.one, secret)
}

// TestCookieIsForItsPerson is a copy of the session that names another person, which only who can
// write to the store of copies could make.
func TestCookieIsForItsPerson(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	secret := fx.issue(t)
	forged, err := fx.sessions.Get(t.Context(), id)
	must.Succeed(t, err)
	forged.UserID = "99999999-2222-4333-8444-555555555555"
	fx.cache.Put(t.Context(), forged, fx.clock.Now())
	if session, err := fx.one.Check(t.Context(), secret); err == nil && session.UserID != user {
		t.Errorf("Check with a forged copy returned the session of %s", session.UserID)
	}
	fx.change(t, func(s *auth.Session) { s.UserID = forged.UserID }) // no use case does this
	fx.clock.Advance(time.Second)
	wantRefused(t, fx.one, secret)
	if _, err := fx.one.Rotate(t.Context(), secret); !fault.Is(err, fault.Unauthenticated) {
		t.Errorf("Rotate for another person returned %v", err)
	}
}

// TestCookieOfAnEarlierVersion is a cookie without a person, which an instance of an earlier
// version has issued during an upgrade.
func TestCookieOfAnEarlierVersion(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	secret := auth.CookieSecret("old")
	err := fx.cookies.Add(t.Context(), auth.SessionCookie{
		Hash: auth.HashSecret(secret), SessionID: id, TrustLevel: auth.Unverified, IssuedAt: fx.clock.Now(),
	})
	must.Succeed(t, err)
	wantGood(t, fx.one, secret, auth.Unverified)
	next, err := fx.one.Rotate(t.Context(), secret)
	must.Succeed(t, err)
	wantGood(t, fx.other, next, auth.Unverified)
	if c, err := fx.cookies.Find(t.Context(), auth.HashSecret(next)); err != nil || c.UserID != user {
		t.Errorf("the next cookie is for %q, %v", c.UserID, err)
	}
}

func TestUseExtendsTheSession(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	secret, began := fx.issue(t), fx.clock.Now()
	expiry := func() time.Time {
		s, err := fx.sessions.Get(t.Context(), id)
		must.Succeed(t, err)
		return s.ExpiresAt
	}
	for _, step := range []struct{ after, want time.Duration }{
		{59 * time.Minute, 7 * day},      // too soon
		{time.Minute, 7*day + time.Hour}, // an hour after the sign-in
		{6 * day, 13*day + time.Hour},    //
		{6 * day, 19*day + time.Hour},    //
		{6 * day, 25*day + time.Hour},    //
		{6 * day, 30 * day},              // never later than this
		{6*day - 2*time.Hour, 30 * day},  //
	} {
		fx.clock.Advance(step.after)
		wantGood(t, fx.one, secret, auth.Unverified)
		if got := expiry().Sub(began); got != step.want {
			t.Errorf("at %v the session expires after %v, want %v", fx.clock.Now().Sub(began), got, step.want)
		}
	}
	fx.clock.Advance(2 * time.Hour)
	wantRefused(t, fx.one, secret)
}

// TestSessionOfAClockThatWasAhead checks that a session whose expiry a clock that was ahead has set
// lives no longer than others.
func TestSessionOfAClockThatWasAhead(t *testing.T) {
	fx := newFixture(t)
	secret := fx.issue(t)
	fx.clock.Advance(-time.Hour)
	wantGood(t, fx.one, secret, auth.Unverified)
	s, err := fx.sessions.Get(t.Context(), id)
	if err != nil || s.ExpiresAt.Sub(fx.clock.Now()) != 7*day {
		t.Errorf("the session expires after %v, error %v, want 7 days", s.ExpiresAt.Sub(fx.clock.Now()), err)
	}
}
