package fakedb

import (
	"context"
	"maps"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// PendingLogins implements [authstore.PendingLogins].
type PendingLogins struct{ db *Database }

// NewPendingLogins returns the pending logins of a database.
func NewPendingLogins(db *Database) *PendingLogins { return &PendingLogins{db: db} }

type pendingKey struct {
	user     auth.UserID
	identity auth.DeviceIdentity
}

// Put stores a pending login and replaces an earlier one.
func (s *PendingLogins) Put(ctx context.Context, p auth.PendingLogin) error {
	p.CreatedAt, p.ExpiresAt = truncateToMicroseconds(p.CreatedAt), truncateToMicroseconds(p.ExpiresAt)
	return s.db.writeTables(ctx, func(t *tables) error {
		if _, ok := t.auth.accounts[p.UserID]; !ok {
			return errMissing("account")
		}
		maps.DeleteFunc(t.auth.pendingLogins, func(_ pendingKey, old auth.PendingLogin) bool {
			return old.UserID == p.UserID && !old.ExpiresAt.After(p.CreatedAt)
		})
		t.auth.pendingLogins[pendingKey{p.UserID, p.DeviceIdentity}] = p
		return nil
	})
}

// Find returns a pending login.
func (s *PendingLogins) Find(
	ctx context.Context, user auth.UserID, identity auth.DeviceIdentity,
) (p auth.PendingLogin, err error) {
	err = s.db.readTables(ctx, func(t *tables) error {
		var ok bool
		if p, ok = t.auth.pendingLogins[pendingKey{user, identity}]; !ok {
			return errNotFound("pending login")
		}
		return nil
	})
	return p, err
}

// Take deletes a pending login. Only one of several concurrent callers succeeds.
func (s *PendingLogins) Take(ctx context.Context, user auth.UserID, identity auth.DeviceIdentity) error {
	return s.db.writeTables(ctx, func(t *tables) error {
		key := pendingKey{user, identity}
		if _, ok := t.auth.pendingLogins[key]; !ok {
			return errNotFound("pending login")
		}
		delete(t.auth.pendingLogins, key)
		return nil
	})
}

// RemoveAll deletes all pending logins of a person.
func (s *PendingLogins) RemoveAll(ctx context.Context, user auth.UserID) error {
	return s.db.writeTables(ctx, func(t *tables) error {
		deleteRows(t.auth.pendingLogins, func(p auth.PendingLogin) bool { return p.UserID == user })
		return nil
	})
}

// DeleteExpired deletes the pending logins that ended before a time.
func (s *PendingLogins) DeleteExpired(ctx context.Context, before time.Time) (n int, err error) {
	err = s.db.writeTables(ctx, func(t *tables) error {
		n = deleteRows(t.auth.pendingLogins, func(p auth.PendingLogin) bool { return p.ExpiresAt.Before(truncateToMicroseconds(before)) })
		return nil
	})
	return n, err
}
