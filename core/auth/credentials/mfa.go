package credentials

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/core/auth/trust"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/secrets"
)

// Enrolment is the input of an authenticator app. It is shown once.
type Enrolment struct {
	Secret auth.TOTPSecret
	URI    string // for a QR code
}

// Enrol gives the caller an authenticator, which the same session must activate within
// auth.EnrolmentTTL. It replaces one that was not activated. The present password is optional: it
// is needed if the person has given neither a password nor a code within
// Config.ReauthenticationMaxAge.
//
// The error is fault.Forbidden with code insufficient_trust below FULL_TRUST: an authenticator
// raises sessions, so a session that could not raise itself must not enrol one. It is the same,
// with the detail maxAge, if the last password or code is too old and the present password is
// empty, and fault.Unauthenticated with code invalid_credentials if that is wrong. It is
// fault.Conflict if an authenticator is active: a stolen session must not replace it without a code
// of it.
func (s *Service) Enrol(ctx context.Context, caller auth.Session, present auth.Password) (Enrolment, error) {
	if err := trust.Require(caller.TrustLevel, auth.FullTrust); err != nil {
		return Enrolment{}, err
	}
	if present == (auth.Password{}) {
		return s.storeEnrolment(ctx, caller, "")
	}
	var e Enrolment
	err := s.withLockout(ctx, caller, func() error {
		verified, err := s.verifyPresent(ctx, caller, present)
		if err == nil {
			e, err = s.storeEnrolment(ctx, caller, verified)
		}
		return err
	})
	return e, err
}

// storeEnrolment stores a new authenticator. verified is the hash of the password that the caller
// has just given, or empty.
func (s *Service) storeEnrolment(
	ctx context.Context, caller auth.Session, verified auth.PasswordHash,
) (Enrolment, error) {
	secret, nonce := secrets.NewTOTPSecret(s.ports.Entropy), secrets.NewNonce(s.ports.Entropy)
	var person auth.Email
	err := s.changeAccount(ctx, caller, &change{action: "mfa_enrol"}, func(a *auth.Account) error {
		if verified != "" && a.PasswordHash != verified {
			return errWrongPassword(errOutdated)
		}
		person = a.Email
		return s.secondFactor.Enrol(a, secret, nonce, auth.Enrolment{At: s.ports.Clock.Now(), SessionID: caller.ID})
	}, func(ctx context.Context, session auth.Session) error {
		if verified != "" {
			return s.recordAuthentication(ctx, session.ID)
		}
		return trust.RequireRecent(&session, s.ports.Clock.Now(), s.config.ReauthenticationMaxAge)
	})
	if err != nil {
		return Enrolment{}, err
	}
	s.notifyPerson(notices.AuthenticatorEnrolled, caller)
	return Enrolment{Secret: secret, URI: secret.URI(s.config.Issuer, person)}, nil
}

// verifyPresent returns the stored hash of the present password, or the error of
// presentPasswordError.
func (s *Service) verifyPresent(
	ctx context.Context, caller auth.Session, present auth.Password,
) (auth.PasswordHash, error) {
	account, err := s.ports.Accounts.Get(ctx, caller.UserID)
	if err != nil {
		return "", err
	}
	match, _, err := s.ports.Passwords.Verify(ctx, account.PasswordHash, present)
	switch {
	case err != nil:
		return "", err
	case !match:
		return "", s.presentPasswordError(ctx, &account, present)
	}
	return account.PasswordHash, nil
}

// Activate makes the caller's authenticator active from the next login on, ends the caller's other
// sessions, and returns the recovery codes, which are shown once. The password or code that the
// enrolment needed counts for the activation too.
//
// The error is fault.Forbidden with code insufficient_trust below FULL_TRUST, fault.Unauthenticated
// with code invalid_mfa for a wrong code, and fault.Conflict if this session has not enrolled an
// authenticator within auth.EnrolmentTTL.
func (s *Service) Activate(ctx context.Context, caller auth.Session, code auth.OTP) ([]auth.OTP, error) {
	if err := trust.Require(caller.TrustLevel, auth.FullTrust); err != nil {
		return nil, err
	}
	recovery := secrets.NewRecoveryCodes(s.ports.Entropy)
	err := s.changeFactor(ctx, caller, factorChange{
		action: "mfa_activate", notice: notices.AuthenticatorActivated,
		alter: func(a *auth.Account, now time.Time) error {
			return s.secondFactor.Activate(a, code, recovery, caller.ID, now)
		},
		do: func(_ context.Context, session auth.Session, now time.Time) error {
			return trust.RequireRecent(&session, now, s.config.ReauthenticationMaxAge+auth.EnrolmentTTL)
		},
	})
	if err != nil {
		return nil, err
	}
	return recovery, nil
}

// Disable removes the caller's authenticator and recovery codes, and ends the caller's other
// sessions. It requires a code of either.
//
// The error is fault.Forbidden with code insufficient_trust below FULL_TRUST, fault.Unauthenticated
// with code invalid_mfa for a wrong code, and fault.Conflict if no authenticator is active.
func (s *Service) Disable(ctx context.Context, caller auth.Session, code auth.OTP) error {
	if err := trust.Require(caller.TrustLevel, auth.FullTrust); err != nil {
		return err
	}
	return s.changeFactor(ctx, caller, factorChange{
		action: "mfa_disable", notice: notices.AuthenticatorDisabled,
		alter: func(a *auth.Account, now time.Time) error {
			err := s.takeCode(a, code, now)
			if err == nil {
				a.MFA = auth.MFA{}
			}
			return err
		},
		do: s.recordCode,
	})
}

// takeCode uses up a code of an authenticator, or a recovery code. It returns auth.WrongCode for
// another code, and fault.Conflict if no authenticator is active.
func (s *Service) takeCode(a *auth.Account, code auth.OTP, now time.Time) error {
	if !a.MFA.Active {
		return fault.New(fault.Conflict, "no authenticator is active")
	}
	factor, err := s.secondFactor.Take(a, code, now)
	if err == nil && factor == "" {
		err = auth.WrongCode()
	}
	return err
}

// recordCode records that the person has just given a code.
func (s *Service) recordCode(ctx context.Context, session auth.Session, _ time.Time) error {
	return s.recordAuthentication(ctx, session.ID)
}

// factorChange is a change of the second factor with a code.
type factorChange struct {
	action audit.Action
	notice notices.Kind
	keep   bool    // the other sessions stay
	name   *string // of the authenticator, set by alter; optional
	alter  func(a *auth.Account, now time.Time) error
	do     func(ctx context.Context, session auth.Session, now time.Time) error // in the same transaction
}

// changeFactor applies a change of the second factor, ends the caller's other sessions unless they
// stay, and sends a notice.
func (s *Service) changeFactor(ctx context.Context, caller auth.Session, c factorChange) error {
	var ended []auth.SessionID
	err := s.withLockout(ctx, caller, func() error {
		now, what := s.ports.Clock.Now(), &change{action: c.action, name: c.name}
		return s.changeAccount(ctx, caller, what, func(a *auth.Account) error { return c.alter(a, now) },
			func(ctx context.Context, session auth.Session) (err error) {
				if err := c.do(ctx, session, now); err != nil || c.keep {
					return err
				}
				ended, err = s.endOthers(ctx, caller, auth.EndSecondFactor)
				return err
			})
	})
	if err != nil {
		return err
	}
	s.ports.Cache.Drop(ctx, ended...)
	s.notifyPerson(c.notice, caller)
	return nil
}
