package credentials

import (
	"context"
	"errors"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/core/auth/trust"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
)

// ChangePassword sets the caller's password and ends their other sessions, and the logins that wait for a second factor.
//
// fault.Forbidden with code insufficient_trust below FULL_TRUST; fault.Invalid with code
// validation_error when the new password breaks a rule; fault.Unauthenticated with code
// invalid_credentials for a wrong present one; fault.Unavailable when too many passwords are being
// hashed (contract ).
func (s *Service) ChangePassword(ctx context.Context, caller auth.Session, present, next auth.Password) error {
	if err := trust.Require(caller.TrustLevel, auth.FullTrust); err != nil {
		return err
	}
	if err := s.rules.Check("newPassword", next); err != nil {
		return err
	}
	var ended []auth.SessionID
	err := s.guarded(ctx, caller, func() (err error) {
		ended, err = s.verifyAndReplace(ctx, caller, present, next)
		return err
	})
	if err != nil {
		return err
	}
	s.ports.Cache.Drop(ctx, ended...)
	s.notify(notices.PasswordChanged, caller)
	return nil
}

// maxVerifications is how often the present password is verified where the stored hash is changed at the same time.
const maxVerifications = 3

// errOutdated is the cause of a refusal of a password that was right when the request began, and was replaced by another request
// meanwhile. It is no guess, and not counted.
var errOutdated = errors.New("the password was replaced by another request")

// verifyAndReplace verifies the present password and replaces it. A hash that was stored meanwhile is verified too: a login may
// have renewed it.
func (s *Service) verifyAndReplace(
	ctx context.Context, caller auth.Session, present, next auth.Password,
) (ended []auth.SessionID, err error) {
	account, err := s.ports.Accounts.Get(ctx, caller.UserID)
	if err != nil {
		return nil, err
	}
	stored, renewed := account.PasswordHash, auth.PasswordHash("")
	for range maxVerifications {
		match, _, err := s.ports.Passwords.Verify(ctx, stored, present)
		switch {
		case err != nil:
			return nil, err
		case !match && renewed == "":
			return nil, s.refusePresent(ctx, &account, present)
		case !match:
			return nil, errPresent(errOutdated)
		}
		if renewed == "" {
			if renewed, err = s.ports.Passwords.Hash(ctx, next); err != nil {
				return nil, err
			}
		}
		verified := stored
		if ended, stored, err = s.replace(ctx, caller, verified, renewed); err != nil || stored == verified {
			return ended, err
		}
	}
	return nil, fault.New(fault.Unavailable, "", "the password is being changed, try again").After(time.Second)
}

// refusePresent returns the failure of a password that is not the account's. One that another request has just replaced is
// outdated.
func (s *Service) refusePresent(ctx context.Context, a *auth.Account, present auth.Password) error {
	replaced := a.LatelyReplaced(s.ports.Clock.Now())
	if replaced == "" {
		return errPresent(nil)
	}
	match, _, err := s.ports.Passwords.Verify(ctx, replaced, present)
	switch {
	case err != nil:
		return err
	case match:
		return errPresent(errOutdated)
	}
	return errPresent(nil)
}

func errPresent(cause error) error {
	return fault.Wrap(fault.Unauthenticated, auth.CodeInvalidCredentials, "the current password is wrong", cause)
}

// replace stores a hash in the place of the verified one and ends what the old password began. Where the verified hash is no
// longer the account's it changes nothing. It returns the hash that it found.
func (s *Service) replace(
	ctx context.Context, caller auth.Session, verified, renewed auth.PasswordHash,
) (ended []auth.SessionID, found auth.PasswordHash, err error) {
	err = s.change(ctx, caller, "password", func(a *auth.Account) error {
		if found = a.PasswordHash; found != verified {
			return errOutdated
		}
		a.ReplacePassword(renewed, s.ports.Clock.Now())
		return nil
	}, func(ctx context.Context) (err error) {
		if err := s.settle(ctx, caller); err != nil {
			return err
		}
		others := authstore.SessionFilter{UserID: caller.UserID, Except: caller.ID}
		ended, err = s.ports.Sessions.End(ctx, others, s.ports.Clock.Now(), auth.EndPassword)
		return err
	})
	if errors.Is(err, errOutdated) {
		return nil, found, nil
	}
	return ended, found, err
}

// settle resets the count of failures, and ends the logins that wait for a second factor.
func (s *Service) settle(ctx context.Context, caller auth.Session) error {
	if err := s.guard.Clear(ctx, auth.ActsLockout(caller.UserID)); err != nil {
		return err
	}
	return s.ports.Pending.RemoveAll(ctx, caller.UserID)
}
