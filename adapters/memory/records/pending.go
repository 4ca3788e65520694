package records

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

// Put keeps a pending login in the place of an earlier one.
func (s *PendingLogins) Put(ctx context.Context, p auth.PendingLogin) error {
	p.CreatedAt, p.ExpiresAt = micros(p.CreatedAt), micros(p.ExpiresAt)
	return s.db.write(ctx, func(t *tables) error {
		if _, ok := t.auth.accounts[p.UserID]; !ok {
			return missing("account")
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
	err = s.db.read(ctx, func(t *tables) error {
		var ok bool
		if p, ok = t.auth.pendingLogins[pendingKey{user, identity}]; !ok {
			return notFound("pending login")
		}
		return nil
	})
	return p, err
}

// Take removes a pending login for one of its callers.
func (s *PendingLogins) Take(ctx context.Context, user auth.UserID, identity auth.DeviceIdentity) error {
	return s.db.write(ctx, func(t *tables) error {
		key := pendingKey{user, identity}
		if _, ok := t.auth.pendingLogins[key]; !ok {
			return notFound("pending login")
		}
		delete(t.auth.pendingLogins, key)
		return nil
	})
}

// RemoveAll removes all pending logins of a person.
func (s *PendingLogins) RemoveAll(ctx context.Context, user auth.UserID) error {
	return s.db.write(ctx, func(t *tables) error {
		deleted(t.auth.pendingLogins, func(p auth.PendingLogin) bool { return p.UserID == user })
		return nil
	})
}

// DeleteExpired removes the pending logins that ended before a time.
func (s *PendingLogins) DeleteExpired(ctx context.Context, before time.Time) (n int, err error) {
	err = s.db.write(ctx, func(t *tables) error {
		n = deleted(t.auth.pendingLogins, func(p auth.PendingLogin) bool { return p.ExpiresAt.Before(micros(before)) })
		return nil
	})
	return n, err
}
