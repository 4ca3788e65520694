// Package lockout bounds guessing. A try is made first and counted after, and its result is only given out once it is counted:
// Fail and Clear settle tries one after the other, on all instances together, and from the failure that fills the count on they
// refuse every try, right or wrong, that is still under way. So parallel guesses get no more answers than the threshold, nothing
// that is right is ever counted, and a process that dies in the middle of a try leaves nothing behind.
//
// What is guessed, and what a failure leaves in the audit log, is up to the callers.
package lockout

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock"
)

// Guard counts the failures of subjects. Its methods join a transaction that the context carries, and return Refusal for a
// subject that is locked. It is safe for concurrent use.
type Guard struct {
	policy auth.LockoutPolicy
	store  authstore.Lockouts
	clock  clock.Clock
}

// New returns a guard of a policy whose numbers are positive.
func New(p auth.LockoutPolicy, s authstore.Lockouts, c clock.Clock) *Guard { return &Guard{p, s, c} }

// Check returns Refusal when the subject is locked. It is called before a try, to spare its cost, and before the caller gives out
// that a try was right without resetting the count.
func (g *Guard) Check(ctx context.Context, key auth.LockoutKey) error {
	now := g.clock.Now()
	l, err := g.store.Get(ctx, key)
	if err != nil {
		return err
	}
	if l.Clamp(g.policy, now) && l.Locked(now) {
		// The shorter lock is stored, or it would begin anew with each call.
		err := g.store.Update(ctx, key, func(stored *auth.Lockout) error {
			stored.Clamp(g.policy, now)
			l = *stored
			return nil
		})
		if err != nil {
			return err
		}
	}
	return g.refuse(&l, now)
}

// Fail counts one failure of a subject and reports whether that locked it. The caller must not give out that the try was wrong
// before Fail, and the transaction that it joins, have succeeded.
func (g *Guard) Fail(ctx context.Context, key auth.LockoutKey) (filled bool, err error) {
	now := g.clock.Now()
	err = g.store.Update(ctx, key, func(l *auth.Lockout) error {
		filled = false // a retried transaction begins anew
		l.Clamp(g.policy, now)
		if err := g.refuse(l, now); err != nil {
			return err
		}
		l.Fail(g.policy, now)
		filled = l.Locked(now)
		return nil
	})
	return filled, err
}

// Clear resets the count of a subject for a try that was right. The caller must not give out that it was before Clear, and the
// transaction that it joins, have succeeded.
func (g *Guard) Clear(ctx context.Context, key auth.LockoutKey) error {
	now := g.clock.Now()
	return g.store.Update(ctx, key, func(l *auth.Lockout) error {
		l.Clamp(g.policy, now)
		if err := g.refuse(l, now); err != nil {
			return err
		}
		*l = auth.Lockout{}
		return nil
	})
}

func (g *Guard) refuse(l *auth.Lockout, now time.Time) error {
	if l.Locked(now) {
		return Refusal(l.LockedUntil)
	}
	return nil
}

// Refusal returns what a locked subject gets: fault.Forbidden with code account_locked and the detail lockoutUntil.
func Refusal(until time.Time) error {
	return fault.New(fault.Forbidden, auth.CodeAccountLocked, "the account is locked").
		WithDetail("lockoutUntil", until.UTC().Format("2006-01-02T15:04:05.000Z07:00"))
}
