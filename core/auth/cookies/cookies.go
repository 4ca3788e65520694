// Package cookies keeps people signed in in a browser: an opaque secret in a cookie names a
// session. The session is the same as that of the API's tokens, and the cookie ends with it. A
// cookie is good for one trust level: whatever changes the level of the session also ends the
// cookie, unless it is rotated.
package cookies

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/access"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/sessioncache"
)

// renewAfter is how long a cookie is used before the life of its session is extended.
const renewAfter = time.Hour

// Config holds the settings of session cookies.
type Config struct {
	SessionTTL time.Duration // how long a session lives after its last extension
}

// Ports are the dependencies of a Service. All fields are required.
type Ports struct {
	Cookies  authstore.SessionCookies
	Sessions authstore.Sessions
	Access   *access.Checker
	Cache    sessioncache.Cache
	Clock    clock.Clock
	Entropy  secrets.Entropy
}

// Service issues, checks and rotates session cookies. It is safe for concurrent use.
type Service struct {
	config Config
	ports  Ports
}

// New returns a service.
func New(c Config, p Ports) *Service { return &Service{c, p} }

// Issue returns the cookie of a session that has just begun. It returns fault.Conflict if the
// session has one.
func (s *Service) Issue(ctx context.Context, of Begun) (auth.CookieSecret, error) {
	secret, cookie := s.newCookie(of)
	return secret, s.ports.Cookies.Add(ctx, cookie)
}

// Begun is a session that gets a cookie: its person, and its trust level, for which the cookie is
// good.
type Begun struct {
	SessionID  auth.SessionID
	UserID     auth.UserID
	TrustLevel auth.TrustLevel
}

// Check returns the active session of a cookie, and extends the session's life. The error is
// fault.Unauthenticated if the cookie is empty or unknown, was replaced by another one, or was
// issued for another trust level than the session has now or for another person, and if the session
// has ended or expired; and fault.Unavailable if the database is not available.
func (s *Service) Check(ctx context.Context, secret auth.CookieSecret) (auth.Session, error) {
	cookie, err := s.find(ctx, secret)
	if err != nil {
		return auth.Session{}, err
	}
	session, err := s.ports.Access.CheckSession(ctx, cookie.SessionID)
	if err != nil {
		return auth.Session{}, err
	}
	if !isFor(cookie, session) {
		if session, err = s.checkStored(ctx, cookie); err != nil {
			return auth.Session{}, err
		}
	}
	s.extend(ctx, &session)
	return session, nil
}

// isFor reports whether a cookie was issued for the person and the trust level of a session.
func isFor(c auth.SessionCookie, s auth.Session) bool {
	return c.TrustLevel == s.TrustLevel && c.UserID == s.UserID
}

// checkStored returns the session of a cookie as it is stored, because a copy may still have the
// trust level from before a step-up on another instance. The stored person of a cookie without one
// is the right one.
func (s *Service) checkStored(ctx context.Context, cookie auth.SessionCookie) (auth.Session, error) {
	session, err := s.loadActive(ctx, cookie.SessionID)
	if cookie.UserID == "" {
		cookie.UserID = session.UserID
	}
	if err == nil && !isFor(cookie, session) {
		err = errCookie()
	}
	if err != nil {
		return auth.Session{}, err
	}
	s.ports.Cache.Drop(ctx, session.ID)
	return session, nil
}

// loadActive reads a session from the store. It returns the error of a cookie that is not good if
// the session is not active.
func (s *Service) loadActive(ctx context.Context, id auth.SessionID) (auth.Session, error) {
	session, err := s.ports.Sessions.Get(ctx, id)
	if fault.Is(err, fault.NotFound) || err == nil && !session.Active(s.ports.Clock.Now()) {
		err = errCookie()
	}
	return session, err
}

// extend extends the life of a session, as a refresh of tokens does, at most once in an hour. If
// the database is not available, the next request does it. A session of a clock that was ahead is
// shortened to the same life.
func (s *Service) extend(ctx context.Context, session *auth.Session) {
	now := s.ports.Clock.Now()
	until := now.Add(s.config.SessionTTL)
	if until.After(session.MaxExpiresAt) {
		until = session.MaxExpiresAt
	}
	ahead := session.ExpiresAt.After(now.Add(s.config.SessionTTL + auth.ClockTolerance))
	if !ahead && until.Sub(session.ExpiresAt) < renewAfter {
		return
	}
	err := s.ports.Sessions.Update(ctx, session.ID, func(stored *auth.Session) error {
		if stored.Active(now) && (ahead || stored.ExpiresAt.Before(until)) {
			stored.ExpiresAt = until
		}
		return nil
	})
	if err == nil {
		s.ports.Cache.Drop(ctx, session.ID)
	}
}

// Rotate replaces a cookie by a new one, for the trust level that its session has now. From then on
// the old one is not good. The errors are those of Check; of concurrent calls one succeeds.
func (s *Service) Rotate(ctx context.Context, secret auth.CookieSecret) (auth.CookieSecret, error) {
	old, err := s.find(ctx, secret)
	if err != nil {
		return "", err
	}
	session, err := s.loadActive(ctx, old.SessionID)
	if err != nil {
		return "", err
	}
	if old.UserID != "" && old.UserID != session.UserID {
		return "", errCookie()
	}
	next, cookie := s.newCookie(Begun{session.ID, session.UserID, session.TrustLevel})
	err = s.ports.Cookies.Replace(ctx, old.Hash, cookie)
	if fault.Is(err, fault.NotFound) {
		return "", errCookie()
	}
	return next, err
}

func (s *Service) newCookie(of Begun) (auth.CookieSecret, auth.SessionCookie) {
	secret := secrets.NewSecret[auth.CookieSecret](s.ports.Entropy)
	return secret, auth.SessionCookie{
		Hash: auth.HashSecret(secret), SessionID: of.SessionID, UserID: of.UserID, TrustLevel: of.TrustLevel,
		IssuedAt: s.ports.Clock.Now(),
	}
}

func (s *Service) find(ctx context.Context, secret auth.CookieSecret) (auth.SessionCookie, error) {
	if secret == "" {
		return auth.SessionCookie{}, errCookie()
	}
	cookie, err := s.ports.Cookies.Find(ctx, auth.HashSecret(secret))
	if fault.Is(err, fault.NotFound) {
		return auth.SessionCookie{}, errCookie()
	}
	return cookie, err
}

func errCookie() error {
	return fault.New(fault.Unauthenticated, "sign in to continue").WithCode(auth.CodeInvalidToken)
}
