package fakedb

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// SessionCookies implements [authstore.SessionCookies].
type SessionCookies struct{ db *Database }

// NewSessionCookies returns the session cookies of a database.
func NewSessionCookies(db *Database) *SessionCookies { return &SessionCookies{db: db} }

// Add stores the cookie of a session.
func (s *SessionCookies) Add(ctx context.Context, c auth.SessionCookie) error {
	return s.db.writeTables(ctx, func(t *tables) error {
		if _, ok := t.auth.sessions[c.SessionID]; !ok {
			return errMissing("session")
		}
		for _, other := range t.auth.cookies {
			if other.SessionID == c.SessionID || other.Hash == c.Hash {
				return errConflict("the session has a cookie")
			}
		}
		c.IssuedAt = truncateToMicroseconds(c.IssuedAt)
		t.auth.cookies[c.Hash] = c
		return nil
	})
}

// Find returns the cookie with a hash.
func (s *SessionCookies) Find(ctx context.Context, hash auth.TokenHash) (c auth.SessionCookie, err error) {
	err = s.db.readTables(ctx, func(t *tables) error {
		var ok bool
		if c, ok = t.auth.cookies[hash]; !ok {
			return errNotFound("session cookie")
		}
		return nil
	})
	return c, err
}

// Replace stores a cookie in place of another one of its session.
func (s *SessionCookies) Replace(ctx context.Context, hash auth.TokenHash, by auth.SessionCookie) error {
	return s.db.writeTables(ctx, func(t *tables) error {
		if old, ok := t.auth.cookies[hash]; !ok || old.SessionID != by.SessionID {
			return errNotFound("session cookie")
		}
		delete(t.auth.cookies, hash)
		by.IssuedAt = truncateToMicroseconds(by.IssuedAt)
		t.auth.cookies[by.Hash] = by
		return nil
	})
}
