package people

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/sessionstore"
)

// maxUnlocked is how many devices' own locks Unlock lifts.
const maxUnlocked = 1000

// Lock keeps a person from signing in until Unlock; living sessions stay. Every method here is fault.NotFound for an address
// without an account.
func (s *Service) Lock(ctx context.Context, email auth.Email) error {
	return s.update(ctx, email, func(a *auth.Account) error {
		return move(a, auth.AccountLocked, auth.AccountActive)
	}, nil)
}

// Unlock ends the lock of an operator, and the locks that failed sign-ins led to.
func (s *Service) Unlock(ctx context.Context, email auth.Email) error {
	return s.update(ctx, email, func(a *auth.Account) error {
		return move(a, auth.AccountActive, auth.AccountLocked)
	}, s.liftLocks)
}

// Disable ends a person's sessions and lets sign-in and refresh answer as for an unknown one (decisions 2.1).
func (s *Service) Disable(ctx context.Context, email auth.Email) error {
	return s.update(ctx, email, func(a *auth.Account) error {
		a.State = auth.AccountDisabled
		return nil
	}, s.ending(auth.EndDisabled))
}

// Enable lets a disabled person sign in again.
func (s *Service) Enable(ctx context.Context, email auth.Email) error {
	return s.update(ctx, email, func(a *auth.Account) error {
		return move(a, auth.AccountActive, auth.AccountDisabled)
	}, nil)
}

// SetPhone sets a person's telephone number; an empty one takes it away.
func (s *Service) SetPhone(ctx context.Context, email auth.Email, phone string) error {
	if err := checkPhone(phone); err != nil {
		return err
	}
	return s.update(ctx, email, func(a *auth.Account) error {
		a.Phone = phone
		return nil
	}, nil)
}

// SetPassword sets a person's password and ends their sessions, and the logins that wait for a second factor.
func (s *Service) SetPassword(ctx context.Context, email auth.Email, p auth.Password) error {
	hash, err := s.hash(ctx, p)
	if err != nil {
		return err
	}
	return s.update(ctx, email, func(a *auth.Account) error {
		a.PasswordHash = hash
		return nil
	}, func(ctx context.Context, a *auth.Account) error {
		if err := s.dropPending(ctx, a); err != nil {
			return err
		}
		return s.ending(auth.EndPassword)(ctx, a)
	})
}

// move changes a state. An account that stands so already is left as it is; one in any other state is fault.Conflict.
func move(a *auth.Account, to, from auth.AccountState) error {
	if a.State != to && a.State != from {
		return fault.Newf(fault.Conflict, "", "the account is %s", a.State)
	}
	a.State = to
	return nil
}

// update alters an account, and what hangs on it, in one transaction.
func (s *Service) update(
	ctx context.Context, email auth.Email,
	alter func(*auth.Account) error, then func(context.Context, *auth.Account) error,
) error {
	return s.records.Transaction.Atomically(ctx, func(ctx context.Context) error {
		a, err := s.ByEmail(ctx, email)
		if err != nil {
			return err
		}
		err = s.records.Accounts.Update(ctx, a.ID, func(stored *auth.Account) error {
			stored.UpdatedAt = s.clock.Now()
			return alter(stored)
		})
		if err != nil || then == nil {
			return err
		}
		return then(ctx, &a)
	})
}

// ending returns what ends a person's sessions. Other processes see it when their copies expire, within a second.
func (s *Service) ending(reason auth.EndReason) func(context.Context, *auth.Account) error {
	return func(ctx context.Context, a *auth.Account) error {
		_, err := s.records.Sessions.End(ctx, sessionstore.Filter{UserID: a.ID}, s.clock.Now(), reason)
		return err
	}
}

func (s *Service) liftLocks(ctx context.Context, a *auth.Account) error {
	devices, err := s.records.Devices.List(ctx, a.ID, maxUnlocked)
	if err != nil {
		return err
	}
	keys := []auth.LockoutKey{auth.EmailLockout(s.lockoutKey, a.Email), auth.ActsLockout(a.ID)}
	for i := range devices {
		keys = append(keys, auth.DeviceLockout(devices[i].ID))
	}
	for _, key := range keys {
		err := s.records.Lockouts.Update(ctx, key, func(l *auth.Lockout) error {
			*l = auth.Lockout{}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
