package records

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// Lockouts answers ports/lockoutstore.
type Lockouts struct{ db *Database }

// NewLockouts returns the lockouts of a database.
func NewLockouts(db *Database) *Lockouts { return &Lockouts{db: db} }

// Update lets change alter a subject's lockout.
func (s *Lockouts) Update(ctx context.Context, key auth.LockoutKey, change func(*auth.Lockout) error) error {
	return s.db.write(ctx, func(t *tables) error {
		l := t.auth.lockouts[key]
		if err := change(&l); err != nil {
			return err
		}
		l.FirstAt, l.LockedUntil = micros(l.FirstAt), micros(l.LockedUntil)
		t.auth.lockouts[key] = l
		return nil
	})
}

// Get returns the subject's lockout.
func (s *Lockouts) Get(ctx context.Context, key auth.LockoutKey) (l auth.Lockout, err error) {
	err = s.db.read(ctx, func(t *tables) error {
		l = t.auth.lockouts[key]
		return nil
	})
	return l, err
}

// DeleteBefore removes the lockouts whose window began and whose lock ended
// before a time.
func (s *Lockouts) DeleteBefore(ctx context.Context, before time.Time) (n int, err error) {
	edge := micros(before)
	err = s.db.write(ctx, func(t *tables) error {
		n = deleted(t.auth.lockouts, func(l auth.Lockout) bool {
			return l.FirstAt.Before(edge) && l.LockedUntil.Before(edge)
		})
		return nil
	})
	return n, err
}
