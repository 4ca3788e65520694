package people

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
)

// act is one thing that an operator does to an account.
type act struct {
	event  auth.EventType
	action string // as the audit event names it
	alter  func(*auth.Account) error
	then   func(context.Context, *auth.Account) error // nil: nothing hangs on it
	ends   auth.EndReason                             // of all sessions; empty: they live on
}

// Lock keeps a person from signing in until Unlock; living sessions stay. Every method here is fault.NotFound for an address
// without an account.
func (s *Service) Lock(ctx context.Context, email auth.Email) error {
	return s.do(ctx, email, act{event: auth.AccountChange, action: "lock", alter: func(a *auth.Account) error {
		return move(a, auth.AccountLocked, auth.AccountActive)
	}})
}

// Unlock ends the lock of an operator, and the locks that failed sign-ins led to.
func (s *Service) Unlock(ctx context.Context, email auth.Email) error {
	return s.do(ctx, email, act{event: auth.AccountChange, action: "unlock", then: s.liftLocks, alter: func(a *auth.Account) error {
		return move(a, auth.AccountActive, auth.AccountLocked)
	}})
}

// Disable ends a person's sessions; sign-in then answers as for an unknown person (contract A-13).
func (s *Service) Disable(ctx context.Context, email auth.Email) error {
	return s.do(ctx, email, act{event: auth.AccountChange, action: "disable", ends: auth.EndDisabled, alter: func(a *auth.Account) error {
		a.State = auth.AccountDisabled
		return nil
	}})
}

// Enable lets a disabled person sign in again.
func (s *Service) Enable(ctx context.Context, email auth.Email) error {
	return s.do(ctx, email, act{event: auth.AccountChange, action: "enable", alter: func(a *auth.Account) error {
		return move(a, auth.AccountActive, auth.AccountDisabled)
	}})
}

// SetPhone sets a person's telephone number; an empty one takes it away.
func (s *Service) SetPhone(ctx context.Context, email auth.Email, phone string) error {
	if err := checkPhone(phone); err != nil {
		return err
	}
	return s.do(ctx, email, act{event: auth.AccountChange, action: "phone", alter: func(a *auth.Account) error {
		a.Phone = phone
		return nil
	}})
}

// SetPassword sets a person's password and ends their sessions, and the logins that wait for a second factor.
func (s *Service) SetPassword(ctx context.Context, email auth.Email, p auth.Password) error {
	hash, err := s.hash(ctx, p)
	if err != nil {
		return err
	}
	return s.do(ctx, email, act{
		event: auth.CredentialChange, action: "password", then: s.dropPending, ends: auth.EndPassword,
		alter: func(a *auth.Account) error {
			a.PasswordHash, a.Replaced = hash, auth.ReplacedPassword{}
			return nil
		},
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

// do alters an account, and what hangs on it, in one transaction that leaves an audit event.
func (s *Service) do(ctx context.Context, email auth.Email, what act) error {
	var ended []auth.SessionID
	err := s.ports.Transaction.Atomically(ctx, func(ctx context.Context) error {
		a, err := s.ByEmail(ctx, email)
		if err != nil {
			return err
		}
		err = s.ports.Accounts.Update(ctx, a.ID, func(stored *auth.Account) error {
			stored.UpdatedAt = s.ports.Clock.Now()
			return what.alter(stored)
		})
		if err != nil {
			return err
		}
		if what.then != nil {
			if err := what.then(ctx, &a); err != nil {
				return err
			}
		}
		details := map[string]any{"action": what.action}
		if what.ends != "" {
			if ended, err = s.ports.Sessions.End(ctx, authstore.SessionFilter{UserID: a.ID}, s.ports.Clock.Now(), what.ends); err != nil {
				return err
			}
			details["sessionsInvalidated"] = len(ended)
		}
		return s.record(ctx, what.event, a.ID, details)
	})
	if err != nil {
		return err
	}
	s.ports.Cache.Drop(ctx, ended...)
	return nil
}

// record tells the audit log what the operator did.
func (s *Service) record(ctx context.Context, event auth.EventType, user auth.UserID, details map[string]any) error {
	details[audit.Actor] = audit.Operator
	return s.ports.Trail.Record(ctx, audit.Entry{Type: event, UserID: user, Success: true, Details: details})
}

func (s *Service) liftLocks(ctx context.Context, a *auth.Account) error {
	devices, err := auth.AllPages(func(page auth.PageRequest) ([]auth.Device, int, error) {
		return s.ports.Devices.List(ctx, a.ID, page)
	})
	if err != nil {
		return err
	}
	keys := []auth.LockoutKey{auth.EmailLockout(s.lockoutKey, a.Email), auth.ActsLockout(a.ID)}
	for i := range devices {
		keys = append(keys, auth.DeviceLockout(devices[i].ID))
	}
	for _, key := range keys {
		err := s.ports.Lockouts.Update(ctx, key, func(l *auth.Lockout) error {
			*l = auth.Lockout{}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
