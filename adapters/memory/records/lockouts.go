package records

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// Lockouts implements [authstore.Lockouts].
type Lockouts struct{ db *Database }

// NewLockouts returns the lockouts of a database.
func NewLockouts(db *Database) *Lockouts { return &Lockouts{db: db} }

// Update lets change alter a subject's lockout.
func (s *Lockouts) Update(ctx context.Context, key auth.LockoutKey, change func(*auth.Lockout) error) error {
	return s.db.write(ctx, func(t *tables) error {
		l := copyLockout(t.auth.lockouts[key])
		if err := change(&l); err != nil {
			return err
		}
		t.auth.lockouts[key] = copyLockout(l)
		return nil
	})
}

// Get returns the subject's lockout.
func (s *Lockouts) Get(ctx context.Context, key auth.LockoutKey) (l auth.Lockout, err error) {
	err = s.db.read(ctx, func(t *tables) error {
		l = copyLockout(t.auth.lockouts[key])
		return nil
	})
	return l, err
}

// DeleteBefore removes the lockouts whose last failure and whose lock's end
// were before a time.
func (s *Lockouts) DeleteBefore(ctx context.Context, before time.Time) (n int, err error) {
	edge := micros(before)
	err = s.db.write(ctx, func(t *tables) error {
		n = deleted(t.auth.lockouts, func(l auth.Lockout) bool {
			return l.Latest().Before(edge)
		})
		return nil
	})
	return n, err
}

// copyLockout returns a lockout that shares nothing with l, with times as a
// database keeps them.
func copyLockout(l auth.Lockout) auth.Lockout {
	own := auth.Lockout{LockedUntil: micros(l.LockedUntil)}
	for _, failed := range l.Failures {
		own.Failures = append(own.Failures, micros(failed))
	}
	return own
}
