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
type Sessions struct{ db *Database }

// NewSessions returns the sessions of a database.
func NewSessions(db *Database) *Sessions { return &Sessions{db} }

// Create implements [authstore.Sessions].
func (s *Sessions) Create(ctx context.Context, session auth.Session) error {
	return s.db.run(ctx, func(ctx context.Context) error {
		if err := cmp.Or(s.db.accounts.refer(session.UserID), s.db.devices.refer(session.DeviceID)); err != nil {
			return err
		}
		return s.db.sessions.insert(ctx, session)
	})
}

// Get implements [authstore.Sessions].
func (s *Sessions) Get(ctx context.Context, id auth.SessionID) (auth.Session, error) {
	return s.db.sessions.find(ctx, id)
}

// Update implements [authstore.Sessions].
func (s *Sessions) Update(ctx context.Context, id auth.SessionID, change func(*auth.Session) error) error {
	return s.db.sessions.update(ctx, id, func(session *auth.Session) error {
		err := change(session)
		session.ID = id
		return err
	})
}

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
) ([]auth.SessionID, error) {
	return result(ctx, s.db, func(ctx context.Context) (ids []auth.SessionID, err error) {
		found, err := s.db.sessions.list(ctx, matches, newestSession)
		for _, session := range found {
			change(&session)
			err = cmp.Or(err, s.db.sessions.put(ctx, session))
			ids = append(ids, session.ID)
		}
		return ids, err
	})
}

// Active implements [authstore.Sessions].
func (s *Sessions) Active(
	ctx context.Context, user auth.UserID, at time.Time, page auth.PageRequest,
) (list []auth.Session, total int, err error) {
	list, err = s.db.sessions.list(ctx, func(s auth.Session) bool { return s.UserID == user && s.Active(at) },
		newestSession)
	list, total = cutPage(list, page)
	return list, total, err
}

// Trusted implements [authstore.SessionHistory].
func (s *Sessions) Trusted(ctx context.Context, user auth.UserID, limit int) ([]auth.Session, error) {
	found, err := s.db.sessions.list(ctx, func(s auth.Session) bool {
		return s.UserID == user && s.TrustLevel.Admits(auth.LimitedTrust)
	}, newestSession)
	return first(found, limit), err
}

func newestSession(a, b auth.Session) int {
	return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(b.ID, a.ID))
}

// CountSince implements [authstore.Sessions].
func (s *Sessions) CountSince(ctx context.Context, user auth.UserID, since time.Time) (int, error) {
	since = storedTime(since)
	found, err := s.db.sessions.list(ctx, func(s auth.Session) bool {
		return s.UserID == user && s.CreatedAt.After(since)
	}, newestSession)
	return len(found), err
}

// DeleteExpired implements [authstore.SessionRetention].
func (s *Sessions) DeleteExpired(ctx context.Context, before time.Time) (int, error) {
	before = storedTime(before)
	return result(ctx, s.db, func(ctx context.Context) (int, error) {
		n, err := s.db.sessions.removeAll(ctx, func(session auth.Session) bool {
			return session.ExpiresAt.Before(before)
		})
		ended := func(id auth.SessionID) bool { return !s.db.sessions.has(id) }
		_, tokens := s.db.refreshTokens.removeAll(ctx, func(t auth.RefreshToken) bool { return ended(t.SessionID) })
		_, cookies := s.db.cookies.removeAll(ctx, func(c auth.SessionCookie) bool { return ended(c.SessionID) })
		_, challenges := s.db.challenges.removeAll(ctx, func(c auth.Challenge) bool { return ended(c.SessionID) })
		_, deferred := s.db.deferred.removeAll(ctx, func(a additionRow) bool { return ended(a.Session) })
		return n, cmp.Or(err, tokens, cookies, challenges, deferred)
	})
}

// RefreshTokens implements [authstore.RefreshTokens].
type RefreshTokens struct{ db *Database }

// NewRefreshTokens returns the refresh tokens of a database.
func NewRefreshTokens(db *Database) *RefreshTokens { return &RefreshTokens{db} }

// Add implements [authstore.RefreshTokens].
func (s *RefreshTokens) Add(ctx context.Context, token auth.RefreshToken) error {
	return s.db.run(ctx, func(ctx context.Context) error {
		return cmp.Or(s.db.sessions.refer(token.SessionID), s.db.refreshTokens.insert(ctx, token))
	})
}

// Find implements [authstore.RefreshTokens].
func (s *RefreshTokens) Find(ctx context.Context, hash auth.TokenHash) (auth.RefreshToken, error) {
	return s.db.refreshTokens.find(ctx, hash)
}

// Spend implements [authstore.RefreshTokens].
func (s *RefreshTokens) Spend(ctx context.Context, hash auth.TokenHash, at time.Time) error {
	return s.db.refreshTokens.update(ctx, hash, func(token *auth.RefreshToken) error {
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
		n, err := s.db.refreshTokens.removeAll(ctx, func(token auth.RefreshToken) bool { return over(token.SessionID) })
		_, deferred := s.db.deferred.removeAll(ctx, func(a additionRow) bool { return over(a.Session) })
		return n, cmp.Or(err, deferred)
	})
}

// SessionCookies implements [authstore.SessionCookies].
type SessionCookies struct{ db *Database }

// NewSessionCookies returns the session cookies of a database.
func NewSessionCookies(db *Database) *SessionCookies { return &SessionCookies{db} }

// Add implements [authstore.SessionCookies].
func (s *SessionCookies) Add(ctx context.Context, c auth.SessionCookie) error {
	return s.db.run(ctx, func(ctx context.Context) error {
		return cmp.Or(s.db.sessions.refer(c.SessionID), s.db.cookies.insert(ctx, c))
	})
}

// Find implements [authstore.SessionCookies].
func (s *SessionCookies) Find(ctx context.Context, hash auth.TokenHash) (auth.SessionCookie, error) {
	return s.db.cookies.find(ctx, hash)
}

// Replace implements [authstore.SessionCookies].
func (s *SessionCookies) Replace(ctx context.Context, hash auth.TokenHash, by auth.SessionCookie) error {
	return s.db.run(ctx, func(ctx context.Context) error {
		if old, err := s.Find(ctx, hash); err != nil || old.SessionID != by.SessionID {
			return cmp.Or(err, s.db.cookies.errNotFound())
		}
		return cmp.Or(s.db.cookies.remove(ctx, hash), s.db.cookies.put(ctx, by))
	})
}
