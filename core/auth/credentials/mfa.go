package credentials

import (
	"context"

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
// auth.EnrolmentTTL. It replaces one that was not activated.
//
// The error is fault.Forbidden with code insufficient_trust below FULL_TRUST: an authenticator
// raises sessions, so a session that could not raise itself must not enrol one. It is
// fault.Conflict if an authenticator is active: a stolen session must not replace it without a code
// of it.
func (s *Service) Enrol(ctx context.Context, caller auth.Session) (Enrolment, error) {
	if err := trust.Require(caller.TrustLevel, auth.FullTrust); err != nil {
		return Enrolment{}, err
	}
	secret, nonce := secrets.NewTOTPSecret(s.ports.Entropy), secrets.NewNonce(s.ports.Entropy)
	var person auth.Email
	err := s.changeAccount(ctx, caller, "mfa_enrol", func(a *auth.Account) error {
		person = a.Email
		return s.secondFactor.Enrol(a, secret, nonce, auth.Enrolment{At: s.ports.Clock.Now(), SessionID: caller.ID})
	}, noFurtherChange)
	if err != nil {
		return Enrolment{}, err
	}
	s.notifyPerson(notices.AuthenticatorEnrolled, caller)
	return Enrolment{Secret: secret, URI: secret.URI(s.config.Issuer, person)}, nil
}

// Activate makes the caller's authenticator active from the next login on, and returns the recovery
// codes, which are shown once.
//
// The error is fault.Forbidden with code insufficient_trust below FULL_TRUST, fault.Unauthenticated
// with code invalid_mfa for a wrong code, and fault.Conflict if this session has not enrolled an
// authenticator within auth.EnrolmentTTL.
func (s *Service) Activate(ctx context.Context, caller auth.Session, code auth.OTP) ([]auth.OTP, error) {
	if err := trust.Require(caller.TrustLevel, auth.FullTrust); err != nil {
		return nil, err
	}
	recovery := secrets.NewRecoveryCodes(s.ports.Entropy)
	err := s.withLockout(ctx, caller, func() error {
		return s.changeAccount(ctx, caller, "mfa_activate", func(a *auth.Account) error {
			return s.secondFactor.Activate(a, code, recovery, caller.ID, s.ports.Clock.Now())
		}, func(ctx context.Context) error { return s.resetLogins(ctx, caller) })
	})
	if err != nil {
		return nil, err
	}
	s.notifyPerson(notices.AuthenticatorActivated, caller)
	return recovery, nil
}

// Disable removes the caller's authenticator and recovery codes. It requires a code of either.
//
// The error is fault.Forbidden with code insufficient_trust below FULL_TRUST, fault.Unauthenticated
// with code invalid_mfa for a wrong code, and fault.Conflict if no authenticator is active.
func (s *Service) Disable(ctx context.Context, caller auth.Session, code auth.OTP) error {
	if err := trust.Require(caller.TrustLevel, auth.FullTrust); err != nil {
		return err
	}
	err := s.withLockout(ctx, caller, func() error {
		return s.changeAccount(ctx, caller, "mfa_disable", func(a *auth.Account) error {
			if !a.MFA.Active {
				return fault.New(fault.Conflict, "no authenticator is active")
			}
			factor, err := s.secondFactor.Take(a, code, s.ports.Clock.Now())
			switch {
			case err != nil:
				return err
			case factor == "":
				return auth.WrongCode()
			}
			a.MFA = auth.MFA{}
			return nil
		}, func(ctx context.Context) error { return s.resetLogins(ctx, caller) })
	})
	if err != nil {
		return err
	}
	s.notifyPerson(notices.AuthenticatorDisabled, caller)
	return nil
}

// noFurtherChange is a no-op for changes of the account alone.
func noFurtherChange(context.Context) error { return nil }
