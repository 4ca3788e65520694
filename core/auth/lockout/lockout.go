// Package lockout bounds guessing. It counts a failure before what was shown is looked at, so that no number of parallel guesses
// gets more of them evaluated than the threshold (decisions 2.2). What is guessed, and what a failure leaves in the audit log, is
// the business of those who ask it.
package lockout

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/lockoutstore"
)

// Guard counts the failures of subjects. Its methods join a transaction that the context carries. It is safe for concurrent use.
type Guard struct {
	policy auth.LockoutPolicy
	store  lockoutstore.Store
	clock  clock.Clock
}

// New returns a guard of a policy whose numbers are positive.
func New(p auth.LockoutPolicy, s lockoutstore.Store, c clock.Clock) *Guard { return &Guard{p, s, c} }

// Reserve counts one failure of a subject, to be taken back or cleared when it turns out to be none. filled tells whether this
// one locks the subject. One that is locked already is refused: fault.Forbidden with code account_locked and the detail
// lockoutUntil.
func (g *Guard) Reserve(ctx context.Context, key auth.LockoutKey) (filled bool, err error) {
	now := g.clock.Now()
	err = g.store.Update(ctx, key, func(l *auth.Lockout) error {
		filled = false // a retried transaction begins anew
		if l.Locked(now) {
			return Refusal(l.LockedUntil)
		}
		l.Fail(g.policy, now)
		filled = l.Locked(now)
		return nil
	})
	return filled, err
}

// GiveBack takes back a failure that was none of the person's, also when the context has ended.
func (g *Guard) GiveBack(ctx context.Context, key auth.LockoutKey) error {
	return g.store.Update(context.WithoutCancel(ctx), key, func(l *auth.Lockout) error {
		l.GiveBack(g.policy)
		return nil
	})
}

// Clear resets the count of a subject.
func (g *Guard) Clear(ctx context.Context, key auth.LockoutKey) error {
	return g.store.Update(ctx, key, func(l *auth.Lockout) error {
		*l = auth.Lockout{}
		return nil
	})
}

// Refusal is what a locked subject is answered (authentication document, section Errors).
func Refusal(until time.Time) error {
	return fault.New(fault.Forbidden, auth.CodeAccountLocked, "the account is locked").
		WithDetail("lockoutUntil", until.UTC().Format("2006-01-02T15:04:05.000Z07:00"))
}
