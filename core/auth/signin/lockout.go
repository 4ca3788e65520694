package signin

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// reserve counts one failure of a subject before the password is looked at, so that no number of parallel guesses gets more of
// them evaluated than the threshold (decisions 2.2). filled tells whether this one locks the subject. A subject that is locked
// already is refused.
func (s *Service) reserve(ctx context.Context, key auth.LockoutKey) (filled bool, err error) {
	now := s.world.Clock.Now()
	err = s.records.Lockouts.Update(ctx, key, func(l *auth.Lockout) error {
		filled = false // a retried transaction begins anew
		if l.Locked(now) {
			return errLocked(l.LockedUntil)
		}
		l.Fail(s.config.Lockout, now)
		filled = l.Locked(now)
		return nil
	})
	return filled, err
}

// giveBack takes back a failure that was none of the person's.
func (s *Service) giveBack(ctx context.Context, key auth.LockoutKey) error {
	return s.records.Lockouts.Update(context.WithoutCancel(ctx), key, func(l *auth.Lockout) error {
		l.Failures = max(l.Failures-1, 0)
		if l.Failures < s.config.Lockout.Threshold {
			l.LockedUntil = time.Time{}
		}
		return nil
	})
}

// clear resets the count of a subject.
func (s *Service) clear(ctx context.Context, key auth.LockoutKey) error {
	return s.records.Lockouts.Update(ctx, key, func(l *auth.Lockout) error {
		*l = auth.Lockout{}
		return nil
	})
}

// untilUnlocked stands for the end of a lock that only an operator ends.
func untilUnlocked() time.Time { return time.Date(9999, time.December, 31, 23, 59, 59, 0, time.UTC) }

func errLocked(until time.Time) error {
	return fault.New(fault.Forbidden, auth.CodeAccountLocked, "the account is locked").
		WithDetail("lockoutUntil", until.UTC().Format("2006-01-02T15:04:05.000Z07:00"))
}

func errCredentials() error {
	return fault.New(fault.Unauthenticated, auth.CodeInvalidCredentials, "e-mail address or password is wrong")
}
