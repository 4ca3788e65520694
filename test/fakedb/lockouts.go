package fakedb

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// Lockouts implements [authstore.Lockouts].
type Lockouts struct{ db *Database }

// NewLockouts returns the lockouts of a database.
func NewLockouts(db *Database) *Lockouts { return &Lockouts{db: db} }

// Update implements [authstore.Lockouts].
func (s *Lockouts) Update(ctx context.Context, key auth.LockoutKey, change func(*auth.Lockout) error) error {
	return s.db.writeTables(ctx, func(t *tables) error {
		l := copyLockout(t.auth.lockouts[key])
		if err := change(&l); err != nil {
			return err
		}
		t.auth.lockouts[key] = copyLockout(l)
		return nil
	})
}

// Get implements [authstore.Lockouts].
func (s *Lockouts) Get(ctx context.Context, key auth.LockoutKey) (l auth.Lockout, err error) {
	err = s.db.readTables(ctx, func(t *tables) error {
		l = copyLockout(t.auth.lockouts[key])
		return nil
	})
	return l, err
}

// DeleteBefore deletes the lockouts whose last failure and lock ended before a time.
func (s *Lockouts) DeleteBefore(ctx context.Context, before time.Time) (n int, err error) {
	edge := truncateToMicroseconds(before)
	err = s.db.writeTables(ctx, func(t *tables) error {
		n = deleteRows(t.auth.lockouts, func(l auth.Lockout) bool {
			return l.Latest().Before(edge)
		})
		return nil
	})
	return n, err
}

// copyLockout returns a copy that shares no memory with l, with times as a database stores them.
func copyLockout(l auth.Lockout) auth.Lockout {
	own := auth.Lockout{LockedUntil: truncateToMicroseconds(l.LockedUntil)}
	for _, failed := range l.Failures {
		own.Failures = append(own.Failures, truncateToMicroseconds(failed))
	}
	return own
}
