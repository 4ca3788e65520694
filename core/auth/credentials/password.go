package credentials

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/trust"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/sessionstore"
)

// ChangePassword sets the caller's password and ends their other sessions, and the logins that wait for a second factor.
//
// fault.Forbidden with code insufficient_trust below LIMITED_TRUST; fault.Invalid with code validation_error when the new password
// breaks a rule; fault.Unauthenticated with code invalid_credentials for a wrong present one; fault.Unavailable when too many
// passwords are being hashed (decisions 2.1).
func (s *Service) ChangePassword(ctx context.Context, caller auth.Session, present, next auth.Password) error {
	if err := trust.Require(caller.TrustLevel, auth.LimitedTrust); err != nil {
		return err
	}
	if err := s.rules.Check("newPassword", next); err != nil {
		return err
	}
	var ended []auth.SessionID
	err := s.guarded(ctx, caller, func() error {
		account, err := s.records.Accounts.Get(ctx, caller.UserID)
		if err != nil {
			return err
		}
		match, _, err := s.world.Passwords.Verify(ctx, account.PasswordHash, present)
		if err != nil {
			return err
		}
		if !match {
			return fault.New(fault.Unauthenticated, auth.CodeInvalidCredentials, "the current password is wrong")
		}
		hash, err := s.world.Passwords.Hash(ctx, next)
		if err != nil {
			return err
		}
		ended, err = s.replace(ctx, caller, account.PasswordHash, hash)
		return err
	})
	if err != nil {
		return err
	}
	s.world.Cache.Drop(ctx, ended...)
	return nil
}

// replace stores a hash in the place of another one, which must still be the account's, and ends what the old password began.
func (s *Service) replace(
	ctx context.Context, caller auth.Session, old, renewed auth.PasswordHash,
) (ended []auth.SessionID, err error) {
	err = s.change(ctx, caller, "password", func(a *auth.Account) error {
		if a.PasswordHash != old {
			return fault.New(fault.Unavailable, "", "the password is being changed, try again").After(time.Second)
		}
		a.PasswordHash = renewed
		return nil
	}, func(ctx context.Context) (err error) {
		others := sessionstore.Filter{UserID: caller.UserID, Except: caller.ID}
		if ended, err = s.records.Sessions.End(ctx, others, s.world.Clock.Now(), auth.EndPassword); err != nil {
			return err
		}
		return s.settle(ctx, caller)
	})
	return ended, err
}

// settle ends the logins that wait for a second factor, and the count of failures.
func (s *Service) settle(ctx context.Context, caller auth.Session) error {
	if err := s.records.Pending.RemoveAll(ctx, caller.UserID); err != nil {
		return err
	}
	return s.guard.Clear(ctx, auth.ActsLockout(caller.UserID))
}
