package signin_test

import (
	"context"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/signin"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/test/must"
)

func withGrace(d time.Duration) func(*signin.Config) {
	return func(c *signin.Config) { c.RefreshReuseGrace = d }
}

func (fx *fixture) mustRefresh(s auth.RefreshSecret) signin.Result {
	fx.t.Helper()
	r, err := fx.tryRefresh(s)
	if err != nil {
		fx.t.Fatalf("refresh: %v", err)
	}
	return r
}

func TestRefreshSlides(t *testing.T) {
	fx := newFixture(t)
	first := fx.mustLogin()
	began := fx.clock.Now()
	fx.clock.Advance(100 * time.Hour)
	second := fx.mustRefresh(first.RefreshToken)
	s := fx.getSession(first.SessionID)
	if second.SessionID != first.SessionID || second.RefreshToken == first.RefreshToken ||
		second.AccessToken == first.AccessToken {
		t.Errorf("second pair %+v", second)
	}
	if s.ExpiresAt.Sub(fx.clock.Now()) != 168*time.Hour || !s.LastActivity.Equal(fx.clock.Now()) ||
		!s.CreatedAt.Equal(began) {
		t.Errorf("session %+v", s)
	}
	fx.clock.Advance(168 * time.Hour)
	_, err := fx.tryRefresh(second.RefreshToken)
	wantFault(t, "after seven idle days", err, fault.Unauthenticated, auth.CodeTokenExpired)
}

func TestRefreshEndsWithTheSessionsGreatestAge(t *testing.T) {
	fx := newFixture(t)
	r := fx.mustLogin()
	for range 7 {
		fx.clock.Advance(100 * time.Hour)
		r = fx.mustRefresh(r.RefreshToken)
	}
	fx.clock.Advance(20*time.Hour - time.Minute)
	if r = fx.mustRefresh(r.RefreshToken); r.ExpiresIn != time.Minute {
		t.Errorf("a minute before the end the access token is good for %v", r.ExpiresIn)
	}
	fx.clock.Advance(time.Minute)
	_, err := fx.tryRefresh(r.RefreshToken)
	wantFault(t, "after 30 days", err, fault.Unauthenticated, auth.CodeTokenExpired)
}

func TestReplayEndsAllSessions(t *testing.T) {
	for name, generations := range map[string]int{"the last": 1, "generations old": 4} {
		t.Run(name, func(t *testing.T) {
			fx := newFixture(t)
			stolen, other := fx.mustLogin(), fx.mustLogin()
			latest := stolen
			for range generations {
				latest = fx.mustRefresh(latest.RefreshToken)
			}
			_, err := fx.tryRefresh(stolen.RefreshToken)
			wantFault(t, "a replay", err, fault.Forbidden, auth.CodeAccessDenied)
			for _, r := range []signin.Result{stolen, latest, other} {
				_, err := fx.tryRefresh(r.RefreshToken)
				wantFault(t, "once ended", err, fault.Unauthenticated, auth.CodeInvalidToken)
				if s := fx.getSession(r.SessionID); s.EndReason != auth.EndReplay {
					t.Errorf("session ended by %q", s.EndReason)
				}
			}
			wantEqual(t, len(fx.cache.dropped), 2, "sessions dropped from the cache")
			wantEqual(t, len(fx.findEvents(audit.SuspiciousActivity)), 1, "suspicious activities")
		})
	}
}

func TestUnknownRefreshToken(t *testing.T) {
	fx := newFixture(t)
	for _, s := range []auth.RefreshSecret{"", "x", "\x00", auth.RefreshSecret(make([]byte, 1<<16))} {
		_, err := fx.tryRefresh(s)
		wantFault(t, "what is no token", err, fault.Unauthenticated, auth.CodeInvalidToken)
	}
}

func TestParallelRefreshesWithOneToken(t *testing.T) {
	fx := newFixture(t)
	r := fx.mustLogin()
	codes := inParallel(20, func() error { _, err := fx.tryRefresh(r.RefreshToken); return err })
	if codes[""] != 1 || codes[auth.CodeAccessDenied] != 1 || codes[auth.CodeInvalidToken] != 18 {
		t.Errorf("answers %v, want one success, one replay, and the rest refused", codes)
	}
}

func TestGraceGivesTheSameSuccessor(t *testing.T) {
	fx := newFixture(t, withGrace(10*time.Second))
	first := fx.mustLogin()
	second := fx.mustRefresh(first.RefreshToken)
	fx.clock.Advance(10 * time.Second)
	if again := fx.mustRefresh(first.RefreshToken); again.RefreshToken != second.RefreshToken {
		t.Error("the repeat got another successor")
	}
	codes := inParallel(10, func() error { _, err := fx.tryRefresh(second.RefreshToken); return err })
	if codes[""] != 10 {
		t.Errorf("answers %v to repeats within the grace, want successes", codes)
	}
	_, err := fx.tryRefresh(first.RefreshToken)
	wantFault(t, "a repeat whose successor is spent", err, fault.Forbidden, auth.CodeAccessDenied)
}

func TestAfterTheGraceARepeatIsAReplay(t *testing.T) {
	fx := newFixture(t, withGrace(10*time.Second))
	first := fx.mustLogin()
	fx.mustRefresh(first.RefreshToken)
	fx.clock.Advance(10*time.Second + time.Millisecond)
	_, err := fx.tryRefresh(first.RefreshToken)
	wantFault(t, "a late repeat", err, fault.Forbidden, auth.CodeAccessDenied)
}

// TestRefreshNeverRaisesTrust checks that no sequence of refreshes changes the trust level of a
// session.
func TestRefreshNeverRaisesTrust(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		fx := newFixture(t, withGrace(time.Duration(rapid.IntRange(0, 20).Draw(rt, "grace"))*time.Second))
		level := auth.TrustLevel(rapid.IntRange(int(auth.HighRisk), int(auth.FullTrust)).Draw(rt, "level"))
		r := fx.mustLogin()
		err := fx.ports.Sessions.Update(context.Background(), r.SessionID, func(s *auth.Session) error {
			s.TrustLevel = level
			return nil
		})
		must.Succeed(rt, err)
		seen := []auth.RefreshSecret{r.RefreshToken}
		for range rapid.IntRange(1, 8).Draw(rt, "steps") {
			fx.clock.Advance(time.Duration(rapid.IntRange(0, 90_000).Draw(rt, "seconds")) * time.Second)
			got, err := fx.tryRefresh(rapid.SampledFrom(seen).Draw(rt, "token"))
			if err == nil {
				seen = append(seen, got.RefreshToken)
				if got.TrustLevel != level {
					rt.Fatalf("refresh answers %s, the session had %s", got.TrustLevel, level)
				}
			}
			if s := fx.getSession(r.SessionID); s.TrustLevel != level || s.ExpiresAt.After(s.MaxExpiresAt) {
				rt.Fatalf("session %+v, it had %s", s, level)
			}
		}
	})
}

func TestSignOut(t *testing.T) {
	fx := newFixture(t)
	fx.addAccount("bert@example.com")
	mine, other := fx.mustLogin(), fx.mustLogin()
	foreign := fx.mustLogin(func(in *signin.Login) { in.Email = "bert@example.com" })
	caller, ctx := fx.getSession(mine.SessionID), context.Background()

	wantFault(t, "another's session", fx.service.SignOut(ctx, caller, foreign.SessionID), fault.Forbidden,
		auth.CodeAccessDenied)
	wantFault(t, "no session", fx.service.SignOut(ctx, caller, "11111111-2222-4333-8444-555555555555"), fault.NotFound,
		auth.CodeNotFound)
	refused := fx.findEvents(audit.AccessRefused)
	if len(refused) != 1 || refused[0].Subject != audit.Subject(caller.UserID) ||
		refused[0].Details.Text("targetSessionId") != string(foreign.SessionID) {
		t.Errorf("events %+v, want one of the refusal", refused)
	}
	must.Succeed(t, fx.service.Terminate(ctx, caller, other.SessionID))
	wantFault(t, "an ended session", fx.service.SignOut(ctx, caller, other.SessionID), fault.NotFound,
		auth.CodeNotFound)
	must.Succeed(t, fx.service.SignOut(ctx, caller, mine.SessionID))
	if a, b := fx.getSession(mine.SessionID).EndReason,
		fx.getSession(other.SessionID).EndReason; a != auth.EndSignOut || b != auth.EndTerminated {
		t.Errorf("ended by %q and %q", a, b)
	}
	_, err := fx.tryRefresh(mine.RefreshToken)
	wantFault(t, "refresh after sign-out", err, fault.Unauthenticated, auth.CodeInvalidToken)
	if fx.getSession(foreign.SessionID).EndReason != "" || len(fx.cache.dropped) != 2 {
		t.Errorf("dropped %v", fx.cache.dropped)
	}
}
