// Package locking limits guessing. An attempt is made first and counted after it, and its result is
// returned only once it is counted. Fail and Clear run one after the other for a subject, across
// all instances. Once the count has reached the threshold, they refuse every attempt, right or
// wrong, that is still running. So parallel guesses get no more results than the threshold, a right
// attempt is never counted, and a process that crashes during an attempt leaves nothing to clean
// up.
//
// The callers decide what is guessed and which audit events a failure causes.
package locking

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/jsonvalue"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock"
)

// Guard counts the failures of subjects. Its methods join the transaction of the context, if any,
// and return Refusal if the subject is locked. It is safe for concurrent use.
type Guard struct {
	policy auth.LockoutPolicy
	store  authstore.Lockouts
	clock  clock.Clock
}

// New returns a guard. The numbers of the policy must be positive.
func New(p auth.LockoutPolicy, s authstore.Lockouts, c clock.Clock) *Guard { return &Guard{p, s, c} }

// Check returns Refusal if the subject is locked. It is called before an attempt, to save its cost,
// and before a caller reveals that an attempt was right without resetting the count.
func (g *Guard) Check(ctx context.Context, key auth.LockoutKey) error {
	now := g.clock.Now()
	l, err := g.store.Get(ctx, key)
	if err != nil {
		return err
	}
	if l.Clamp(g.policy, now) && l.Locked(now) {
		// The shorter lock must be stored, otherwise it would begin again with each call.
		err := g.store.Update(ctx, key, func(stored *auth.Lockout) error {
			stored.Clamp(g.policy, now)
			l = *stored
			return nil
		})
		if err != nil {
			return err
		}
	}
	return g.checkUnlocked(&l, now)
}

// Fail counts one failure of a subject and reports whether that locked it. The caller must not
// reveal that the attempt was wrong before Fail, and the transaction that it joins, have succeeded.
func (g *Guard) Fail(ctx context.Context, key auth.LockoutKey) (locked bool, err error) {
	now := g.clock.Now()
	var counted auth.Lockout
	err = g.store.Update(ctx, key, func(l *auth.Lockout) error {
		l.Clamp(g.policy, now)
		if err := g.checkUnlocked(l, now); err != nil {
			return err
		}
		l.Fail(g.policy, now)
		counted = *l
		return nil
	})
	return err == nil && counted.Locked(now), err
}

// Clear resets the count of a subject after a right attempt. The caller must not reveal that the
// attempt was right before Clear, and the transaction that it joins, have succeeded.
func (g *Guard) Clear(ctx context.Context, key auth.LockoutKey) error {
	now := g.clock.Now()
	return g.store.Update(ctx, key, func(l *auth.Lockout) error {
		l.Clamp(g.policy, now)
		if err := g.checkUnlocked(l, now); err != nil {
			return err
		}
		*l = auth.Lockout{}
		return nil
	})
}

func (g *Guard) checkUnlocked(l *auth.Lockout, now time.Time) error {
	if l.Locked(now) {
		return Refusal(l.LockedUntil)
	}
	return nil
}

// Refusal returns the error for a locked subject: fault.Forbidden with code account_locked and the
// detail lockoutUntil.
func Refusal(until time.Time) error {
	return fault.New(fault.Forbidden, "the account is locked").WithCode(auth.CodeAccountLocked).
		WithDetail("lockoutUntil", jsonvalue.Text(until.UTC().Format("2006-01-02T15:04:05.000Z07:00")))
}

// detailReason is the detail of a SUSPICIOUS_ACTIVITY with its cause.
const detailReason = "reason"

// NewLock returns the SUSPICIOUS_ACTIVITY of a lock after too many failures, with details of the
// last one.
func NewLock(user auth.UserID, details audit.Details) audit.Change {
	details[detailReason] = audit.Text(auth.CodeAccountLocked)
	return audit.Change{
		Category: audit.SuspiciousActivity, Subject: audit.Subject(user), Failed: true, Details: details,
	}
}

// IsLock reports whether an event is that of a lock.
func IsLock(e *audit.Event) bool {
	return e.Category == audit.SuspiciousActivity && e.Details.Text(detailReason) == string(auth.CodeAccountLocked)
}
