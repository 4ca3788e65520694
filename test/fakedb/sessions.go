package fakedb

import (
	"cmp"
	"context"
	"maps"
	"math"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/ports/authstore"
)

// Sessions implements [authstore.Sessions].
type Sessions struct{ db *Database }

// NewSessions returns the sessions of a database.
func NewSessions(db *Database) *Sessions { return &Sessions{db: db} }

// Create adds a session.
func (s *Sessions) Create(ctx context.Context, session auth.Session) error {
	return s.db.writeTables(ctx, func(t *tables) error {
		if _, ok := t.auth.accounts[session.UserID]; !ok {
			return errMissing("account")
		}
		if _, ok := t.auth.devices[session.DeviceID]; !ok {
			return errMissing("device")
		}
		if _, taken := t.auth.sessions[session.ID]; taken {
			return errConflict("the session id is already in use")
		}
		t.auth.sessions[session.ID] = copySession(session)
		return nil
	})
}

// Get returns a session, ended or not.
func (s *Sessions) Get(ctx context.Context, id auth.SessionID) (session auth.Session, err error) {
	err = s.db.readTables(ctx, func(t *tables) error {
		var ok bool
		if session, ok = t.auth.sessions[id]; !ok {
			return errNotFound("session")
		}
		return nil
	})
	return session, err
}

// Update implements [authstore.Sessions].
func (s *Sessions) Update(ctx context.Context, id auth.SessionID, change func(*auth.Session) error) error {
	return s.db.writeTables(ctx, func(t *tables) error {
		session, ok := t.auth.sessions[id]
		if !ok {
			return errNotFound("session")
		}
		if err := change(&session); err != nil {
			return err
		}
		session.ID = id
		t.auth.sessions[id] = copySession(session)
		return nil
	})
}

// End ends the active sessions that match the filter.
func (s *Sessions) End(ctx context.Context, which authstore.SessionFilter, at time.Time, reason auth.EndReason) (ids []auth.SessionID, err error) {
	err = s.db.writeTables(ctx, func(t *tables) error {
		for id, session := range t.auth.sessions {
			if !matchesFilter(session, which) || !session.Active(at) {
				continue
			}
			session.EndedAt, session.EndReason = truncateToMicroseconds(at), reason
			t.auth.sessions[id] = session
			ids = append(ids, id)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return ids, nil
}

// Lower lowers the trust of the active sessions that match the filter.
func (s *Sessions) Lower(
	ctx context.Context, which authstore.SessionFilter, to auth.TrustLevel, at time.Time,
) (ids []auth.SessionID, err error) {
	err = s.db.writeTables(ctx, func(t *tables) error {
		for id, session := range t.auth.sessions {
			if !matchesFilter(session, which) || !session.Active(at) || session.TrustLevel <= to {
				continue
			}
			session.TrustLevel = to
			t.auth.sessions[id] = session
			ids = append(ids, id)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return ids, nil
}

// Active returns a page of the active sessions of a user, newest first.
func (s *Sessions) Active(
	ctx context.Context, user auth.UserID, at time.Time, page auth.PageRequest,
) (list []auth.Session, total int, err error) {
	living := func(session auth.Session) bool { return session.UserID == user && session.Active(at) }
	list, err = s.selectNewest(ctx, living, math.MaxInt)
	list, total = cutPage(list, page)
	return list, total, err
}

// Trusted returns the sessions of a user at LIMITED_TRUST or above, newest first. It implements
// [authstore.SessionHistory].
func (s *Sessions) Trusted(ctx context.Context, user auth.UserID, limit int) ([]auth.Session, error) {
	return s.selectNewest(ctx, func(session auth.Session) bool {
		return session.UserID == user && session.TrustLevel.Admits(auth.LimitedTrust)
	}, limit)
}

func (s *Sessions) selectNewest(ctx context.Context, fits func(auth.Session) bool, limit int) (list []auth.Session, err error) {
	err = s.db.readTables(ctx, func(t *tables) error {
		list = selectRows(t.auth.sessions, fits, func(a, b auth.Session) int {
			return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(b.ID, a.ID))
		}, limit)
		return nil
	})
	return list, err
}

// CountSince returns the number of sessions of a user that were created after a time.
func (s *Sessions) CountSince(ctx context.Context, user auth.UserID, since time.Time) (n int, err error) {
	err = s.db.readTables(ctx, func(t *tables) error {
		for _, session := range t.auth.sessions {
			if session.UserID == user && session.CreatedAt.After(truncateToMicroseconds(since)) {
				n++
			}
		}
		return nil
	})
	return n, err
}

// DeleteExpired deletes expired sessions and their records. It implements
// [authstore.SessionRetention].
func (s *Sessions) DeleteExpired(ctx context.Context, before time.Time) (n int, err error) {
	err = s.db.writeTables(ctx, func(t *tables) error {
		n = deleteRows(t.auth.sessions, func(session auth.Session) bool { return session.ExpiresAt.Before(truncateToMicroseconds(before)) })
		gone := func(id auth.SessionID) bool { _, kept := t.auth.sessions[id]; return !kept }
		deleteRows(t.auth.refreshTokens, func(r auth.RefreshToken) bool { return gone(r.SessionID) })
		deleteRows(t.auth.cookies, func(c auth.SessionCookie) bool { return gone(c.SessionID) })
		deleteRows(t.auth.challenges, func(c auth.Challenge) bool { return gone(c.SessionID) })
		maps.DeleteFunc(t.auth.deferred, func(id auth.SessionID, _ deferral) bool { return gone(id) })
		return nil
	})
	return n, err
}

func matchesFilter(s auth.Session, which authstore.SessionFilter) bool {
	return s.UserID == which.UserID && (which.DeviceID == "" || s.DeviceID == which.DeviceID) &&
		(which.Except == "" || s.ID != which.Except)
}

func copySession(s auth.Session) auth.Session {
	s.CreatedAt, s.LastActivity, s.EndedAt = truncateToMicroseconds(s.CreatedAt), truncateToMicroseconds(s.LastActivity), truncateToMicroseconds(s.EndedAt)
	s.ReauthenticatedAt = truncateToMicroseconds(s.ReauthenticatedAt)
	s.ExpiresAt, s.MaxExpiresAt = truncateToMicroseconds(s.ExpiresAt), truncateToMicroseconds(s.MaxExpiresAt)
	return s
}

// RefreshTokens implements [authstore.RefreshTokens].
type RefreshTokens struct{ db *Database }

// NewRefreshTokens returns the refresh tokens of a database.
func NewRefreshTokens(db *Database) *RefreshTokens { return &RefreshTokens{db: db} }

// Add stores a new token.
func (s *RefreshTokens) Add(ctx context.Context, token auth.RefreshToken) error {
	return s.db.writeTables(ctx, func(t *tables) error {
		if _, ok := t.auth.sessions[token.SessionID]; !ok {
			return errMissing("session")
		}
		if _, taken := t.auth.refreshTokens[token.Hash]; taken {
			return errConflict("the refresh token is already in use")
		}
		token.IssuedAt, token.ExpiresAt, token.SpentAt = truncateToMicroseconds(token.IssuedAt), truncateToMicroseconds(token.ExpiresAt), truncateToMicroseconds(token.SpentAt)
		t.auth.refreshTokens[token.Hash] = token
		return nil
	})
}

// Find returns the token with a hash, spent or not.
func (s *RefreshTokens) Find(ctx context.Context, hash auth.TokenHash) (token auth.RefreshToken, err error) {
	err = s.db.readTables(ctx, func(t *tables) error {
		var ok bool
		if token, ok = t.auth.refreshTokens[hash]; !ok {
			return errNotFound("refresh token")
		}
		return nil
	})
	return token, err
}

// Spend marks an unspent token as spent.
func (s *RefreshTokens) Spend(ctx context.Context, hash auth.TokenHash, at time.Time) error {
	return s.db.writeTables(ctx, func(t *tables) error {
		token, ok := t.auth.refreshTokens[hash]
		switch {
		case !ok:
			return errNotFound("refresh token")
		case !token.SpentAt.IsZero():
			return errConflict("the refresh token was already spent")
		}
		token.SpentAt = truncateToMicroseconds(at)
		t.auth.refreshTokens[hash] = token
		return nil
	})
}

// DeleteExpired deletes the tokens of sessions that cannot be refreshed, and what is deferred for
// them.
func (s *RefreshTokens) DeleteExpired(ctx context.Context, before time.Time) (n int, err error) {
	err = s.db.writeTables(ctx, func(t *tables) error {
		over := func(id auth.SessionID) bool {
			session := t.auth.sessions[id]
			ended := !session.EndedAt.IsZero() && !session.EndedAt.After(before)
			return ended || !session.ExpiresAt.After(before)
		}
		n = deleteRows(t.auth.refreshTokens, func(token auth.RefreshToken) bool { return over(token.SessionID) })
		maps.DeleteFunc(t.auth.deferred, func(id auth.SessionID, _ deferral) bool { return over(id) })
		return nil
	})
	return n, err
}
