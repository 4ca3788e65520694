package people

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// accountChange is a change of an account by an operator.
type accountChange struct {
	category  audit.Category
	action    audit.Action
	alter     func(*auth.Account) error
	after     func(context.Context, *auth.Account) error // called after alter; optional
	endReason auth.EndReason                             // of all sessions; empty: sessions do not end
}

// Lock prevents a person from signing in until Unlock. Active sessions stay. Every method of this
// file returns fault.NotFound for an address without an account.
func (s *Service) Lock(ctx context.Context, email auth.Email) error {
	return s.changeAccount(ctx, email,
		accountChange{category: audit.AccountChange, action: "lock", alter: func(a *auth.Account) error {
			return changeState(a, auth.AccountLocked, auth.AccountActive)
		}})
}

// Unlock ends the lock of an operator and the locks caused by failed sign-ins.
func (s *Service) Unlock(ctx context.Context, email auth.Email) error {
	return s.changeAccount(ctx, email,
		accountChange{category: audit.AccountChange, action: "unlock", after: s.liftLocks,
			alter: func(a *auth.Account) error {
				return changeState(a, auth.AccountActive, auth.AccountLocked)
			}})
}

// Disable ends a person's sessions and disables the account. Sign-in then returns the errors of an
// unknown person (contract A-13).
func (s *Service) Disable(ctx context.Context, email auth.Email) error {
	return s.changeAccount(ctx, email,
		accountChange{category: audit.AccountChange, action: "disable", endReason: auth.EndDisabled,
			alter: func(a *auth.Account) error {
				a.State = auth.AccountDisabled
				return nil
			}})
}

// Enable lets a disabled person sign in again.
func (s *Service) Enable(ctx context.Context, email auth.Email) error {
	return s.changeAccount(ctx, email,
		accountChange{category: audit.AccountChange, action: "enable", alter: func(a *auth.Account) error {
			return changeState(a, auth.AccountActive, auth.AccountDisabled)
		}})
}

// SetPhone sets a person's telephone number; an empty one removes it.
func (s *Service) SetPhone(ctx context.Context, email auth.Email, phone string) error {
	if err := checkPhone(phone); err != nil {
		return err
	}
	return s.changeAccount(ctx, email,
		accountChange{category: audit.AccountChange, action: "phone", alter: func(a *auth.Account) error {
			a.Phone = phone
			return nil
		}})
}

// SetPassword sets a person's password, and ends their sessions and their logins that wait for a
// second factor.
func (s *Service) SetPassword(ctx context.Context, email auth.Email, p auth.Password) error {
	a, err := s.ByEmail(ctx, email)
	if err != nil {
		return err
	}
	hash, err := s.hashPassword(ctx, p, a.Email, a.Name)
	if err != nil {
		return err
	}
	return s.changeAccount(ctx, email, accountChange{
		category: audit.CredentialChange, action: "password", after: s.dropPending, endReason: auth.EndPassword,
		alter: func(a *auth.Account) error {
			a.PasswordHash, a.Replaced = hash, auth.ReplacedPassword{}
			return nil
		},
	})
}

// changeState sets the state of an account to to. It returns fault.Conflict if the state is neither
// to nor from.
func changeState(a *auth.Account, to, from auth.AccountState) error {
	if a.State != to && a.State != from {
		return fault.Newf(fault.Conflict, "the account is %s", a.State)
	}
	a.State = to
	return nil
}

// changeAccount applies a change to an account and writes an audit event, in one transaction.
func (s *Service) changeAccount(ctx context.Context, email auth.Email, what accountChange) error {
	ended, err := transaction.Do(ctx, s.ports.Transaction,
		func(ctx context.Context) (ended []auth.SessionID, err error) {
			a, err := s.ByEmail(ctx, email)
			if err != nil {
				return nil, err
			}
			err = s.ports.Accounts.Update(ctx, a.ID, func(stored *auth.Account) error {
				stored.UpdatedAt = s.ports.Clock.Now()
				return what.alter(stored)
			})
			if err != nil {
				return nil, err
			}
			if what.after != nil {
				if err := what.after(ctx, &a); err != nil {
					return nil, err
				}
			}
			change := audit.Change{
				Category: what.category, Action: what.action, Subject: audit.Subject(a.ID), ByOperator: true,
			}
			if what.endReason != "" {
				if ended, err = s.ports.Sessions.End(ctx, authstore.SessionFilter{UserID: a.ID}, s.ports.Clock.Now(),
					what.endReason); err != nil {
					return nil, err
				}
				change.Details = audit.Details{"sessionsInvalidated": audit.Number(len(ended))}
			}
			return ended, s.ports.Trail.RecordChanges(ctx, change)
		})
	if err != nil {
		return err
	}
	s.ports.Cache.Drop(ctx, ended...)
	return nil
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
