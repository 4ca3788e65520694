package credentials

import (
	"context"
	"errors"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/core/auth/trust"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// CheckPassword returns fault.Invalid with code validation_error if a new password breaks a rule
// (contract A-12).
func (s *Service) CheckPassword(a *auth.Account, next auth.Password) error {
	return s.rules.Check("newPassword", next, a.Email, a.Name)
}

// ChangePassword sets the caller's password, and ends their other sessions and their logins that
// wait for a second factor.
//
// The error is fault.Forbidden with code insufficient_trust below FULL_TRUST, fault.Invalid with
// code validation_error if the new password breaks a rule, fault.Unauthenticated with code
// invalid_credentials if the present one is wrong, and fault.Unavailable if too many passwords are
// being hashed (contract ).
func (s *Service) ChangePassword(ctx context.Context, caller auth.Session, present, next auth.Password) error {
	if err := trust.Require(caller.TrustLevel, auth.FullTrust); err != nil {
		return err
	}
	account, err := s.ports.Accounts.Get(ctx, caller.UserID)
	if err != nil {
		return err
	}
	if err := s.CheckPassword(&account, next); err != nil {
		return err
	}
	var ended []auth.SessionID
	err = s.withLockout(ctx, caller, func() (err error) {
		ended, err = s.verifyAndReplace(ctx, caller, present, next)
		return err
	})
	if err != nil {
		return err
	}
	s.ports.Cache.Drop(ctx, ended...)
	s.notifyPerson(notices.PasswordChanged, caller)
	return nil
}

// maxVerifications is how often the present password is verified if the stored hash changes in the
// meantime.
const maxVerifications = 3

// errOutdated is the cause of the error for a password that was right when the request began, and
// was replaced by another request in the meantime. It is not a guess, and not counted.
var errOutdated = errors.New("the password was replaced by another request")

// verifyAndReplace verifies the present password, replaces it and returns the sessions that ended.
// If the stored hash has changed in the meantime, it verifies the new one too, because a login may
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
			return nil, s.presentPasswordError(ctx, &account, present)
		case !match:
			return nil, errWrongPassword(errOutdated)
		}
		if renewed == "" {
			if renewed, err = s.ports.Passwords.Hash(ctx, next); err != nil {
				return nil, err
			}
		}
		verified := stored
		if ended, stored, err = s.replacePassword(ctx, caller, verified, renewed); err != nil || stored == verified {
			return ended, err
		}
	}
	return nil, fault.New(fault.Unavailable, "the password is being changed, try again in a second").After(time.Second)
}

// presentPasswordError returns the error for a present password that is wrong. Its cause is
// errOutdated if another request has just replaced the password.
func (s *Service) presentPasswordError(ctx context.Context, a *auth.Account, present auth.Password) error {
	replaced := a.LatelyReplaced(s.ports.Clock.Now())
	if replaced == "" {
		return errWrongPassword(nil)
	}
	match, _, err := s.ports.Passwords.Verify(ctx, replaced, present)
	switch {
	case err != nil:
		return err
	case match:
		return errWrongPassword(errOutdated)
	}
	return errWrongPassword(nil)
}

func errWrongPassword(cause error) error {
	return fault.Wrap(fault.Unauthenticated, "the current password is wrong", cause).
		WithCode(auth.CodeInvalidCredentials)
}

// replacePassword replaces the verified hash, and ends the other sessions, the pending logins and the
// links to set another password.
// If the account no longer has the verified hash, it changes nothing. It returns the hash that it
// found.
func (s *Service) replacePassword(
	ctx context.Context, caller auth.Session, verified, renewed auth.PasswordHash,
) (ended []auth.SessionID, found auth.PasswordHash, err error) {
	err = s.changeAccount(ctx, caller, &change{action: "password"}, func(a *auth.Account) error {
		if found = a.PasswordHash; found != verified {
			return errOutdated
		}
		a.ReplacePassword(renewed, s.ports.Clock.Now())
		return nil
	}, func(ctx context.Context, _ auth.Session) (err error) {
		if ended, err = s.endOthers(ctx, caller, auth.EndPassword); err != nil {
			return err
		}
		if err := s.ports.Links.RemoveAll(ctx, caller.UserID, auth.LinkReset); err != nil {
			return err
		}
		return s.recordAuthentication(ctx, caller.ID)
	})
	if errors.Is(err, errOutdated) {
		return nil, found, nil
	}
	return ended, found, err
}
