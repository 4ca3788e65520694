package fakedb

import (
	"cmp"
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
)

// Sessions implements [authstore.Sessions].
type Sessions struct {
	*table[auth.SessionID, auth.Session]
}

// NewSessions returns the sessions of a database.
func NewSessions(db *Database) *Sessions { return &Sessions{db.sessions} }

// End implements [authstore.Sessions].
func (s *Sessions) End(
	ctx context.Context, which authstore.SessionFilter, at time.Time, reason auth.EndReason,
) ([]auth.SessionID, error) {
	return s.change(ctx, func(session auth.Session) bool { return matchesFilter(session, which) && session.Active(at) },
		func(session *auth.Session) { session.EndedAt, session.EndReason = at, reason })
}

// Lower implements [authstore.SessionLevels].
func (s *Sessions) Lower(
	ctx context.Context, which authstore.SessionFilter, to auth.TrustLevel, at time.Time,
) ([]auth.SessionID, error) {
	return s.change(ctx, func(session auth.Session) bool {
		return matchesFilter(session, which) && session.Active(at) && session.TrustLevel > to
	}, func(session *auth.Session) { session.TrustLevel = to })
}

func matchesFilter(s auth.Session, which authstore.SessionFilter) bool {
	return s.UserID == which.UserID && (which.DeviceID == "" || s.DeviceID == which.DeviceID) &&
		(which.Except == "" || s.ID != which.Except)
}

// change changes the sessions that match, and returns their ids.
func (s *Sessions) change(
	ctx context.Context, matches func(auth.Session) bool, change func(*auth.Session),
) (ids []auth.SessionID, err error) {
	changed, err := s.changeAll(ctx, matches, newestSession, change)
	for _, session := range changed {
		ids = append(ids, session.ID)
	}
	return ids, err
}

// Active implements [authstore.Sessions].
func (s *Sessions) Active(
	ctx context.Context, user auth.UserID, at time.Time, page auth.PageRequest,
) (list []auth.Session, total int, err error) {
	list, err = s.list(ctx, func(s auth.Session) bool { return s.UserID == user && s.Active(at) },
		newestSession)
	list, total = cutPage(list, page)
	return list, total, err
}

// Trusted implements [authstore.SessionHistory].
func (s *Sessions) Trusted(ctx context.Context, user auth.UserID, limit int) ([]auth.Session, error) {
	return s.listFirst(ctx, limit, func(s auth.Session) bool {
		return s.UserID == user && s.TrustLevel.Admits(auth.LimitedTrust)
	}, newestSession)
}

func newestSession(a, b auth.Session) int {
	return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(b.ID, a.ID))
}

// CountSince implements [authstore.Sessions].
func (s *Sessions) CountSince(ctx context.Context, user auth.UserID, since time.Time) (int, error) {
	since = storedTime(since)
	found, err := s.list(ctx, func(s auth.Session) bool {
		return s.UserID == user && s.CreatedAt.After(since)
	}, newestSession)
	return len(found), err
}

// DeleteExpired implements [authstore.SessionRetention].
func (s *Sessions) DeleteExpired(ctx context.Context, before time.Time) (int, error) {
	before = storedTime(before)
	return result(ctx, s.db, func(ctx context.Context) (int, error) {
		n, err := s.removeAll(ctx, func(session auth.Session) bool {
			return session.ExpiresAt.Before(before)
		})
		ended := func(id auth.SessionID) bool { return !s.has(id) }
		_, tokens := s.db.refreshTokens.removeAll(ctx, func(t auth.RefreshToken) bool { return ended(t.SessionID) })
		_, cookies := s.db.cookies.removeAll(ctx, func(c auth.SessionCookie) bool { return ended(c.SessionID) })
		_, challenges := s.db.challenges.removeAll(ctx, func(c auth.Challenge) bool { return ended(c.SessionID) })
		_, deferred := s.db.deferred.removeAll(ctx, func(a additionRow) bool { return ended(a.Session) })
		return n, cmp.Or(err, tokens, cookies, challenges, deferred)
	})
}

// RefreshTokens implements [authstore.RefreshTokens].
type RefreshTokens struct {
	*table[auth.TokenHash, auth.RefreshToken]
}

// NewRefreshTokens returns the refresh tokens of a database.
func NewRefreshTokens(db *Database) *RefreshTokens { return &RefreshTokens{db.refreshTokens} }

// Spend implements [authstore.RefreshTokens].
func (s *RefreshTokens) Spend(ctx context.Context, hash auth.TokenHash, at time.Time) error {
	return s.update(ctx, hash, func(token *auth.RefreshToken) error {
		if !token.SpentAt.IsZero() {
			return fault.New(fault.Conflict, "the refresh token was already spent")
		}
		token.SpentAt = at
		return nil
	})
}

// DeleteExpired implements [authstore.RefreshTokens].
func (s *RefreshTokens) DeleteExpired(ctx context.Context, before time.Time) (int, error) {
	return result(ctx, s.db, func(ctx context.Context) (int, error) {
		over := func(id auth.SessionID) bool {
			session := s.db.sessions.rows[id]
			ended := !session.EndedAt.IsZero() && !session.EndedAt.After(before)
			return ended || !session.ExpiresAt.After(before)
		}
		n, err := s.removeAll(ctx, func(token auth.RefreshToken) bool { return over(token.SessionID) })
		_, deferred := s.db.deferred.removeAll(ctx, func(a additionRow) bool { return over(a.Session) })
		return n, cmp.Or(err, deferred)
	})
}

// SessionCookies implements [authstore.SessionCookies].
type SessionCookies struct {
	*table[auth.TokenHash, auth.SessionCookie]
}

// NewSessionCookies returns the session cookies of a database.
func NewSessionCookies(db *Database) *SessionCookies { return &SessionCookies{db.cookies} }

// Replace implements [authstore.SessionCookies].
func (s *SessionCookies) Replace(ctx context.Context, hash auth.TokenHash, by auth.SessionCookie) error {
	return s.db.run(ctx, func(ctx context.Context) error {
		if old, err := s.Find(ctx, hash); err != nil || old.SessionID != by.SessionID {
			return cmp.Or(err, s.errNotFound())
		}
		return cmp.Or(s.remove(ctx, hash), s.put(ctx, by))
	})
}
