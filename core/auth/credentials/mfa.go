package credentials

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/core/auth/trust"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/secrets"
)

// Enrolment is what an authenticator app needs to know. It is shown once.
type Enrolment struct {
	Secret auth.TOTPSecret
	URI    string // for a QR code
}

// Enrol gives the caller an authenticator that counts once the same session activates it, within auth.EnrolmentTTL. It replaces
// one that was not activated.
//
// fault.Forbidden with code insufficient_trust below FULL_TRUST: an authenticator raises sessions, so a session must not enrol one
// that could not raise itself. fault.Conflict when an authenticator is active: a stolen session must not replace it without a
// code of it.
func (s *Service) Enrol(ctx context.Context, caller auth.Session) (Enrolment, error) {
	if err := trust.Require(caller.TrustLevel, auth.FullTrust); err != nil {
		return Enrolment{}, err
	}
	secret, nonce := secrets.NewTOTPSecret(s.ports.Entropy), secrets.NewNonce(s.ports.Entropy)
	var person auth.Email
	err := s.change(ctx, caller, "mfa_enrol", func(a *auth.Account) error {
		person = a.Email
		return s.secondFactor.Enrol(a, secret, nonce, auth.Enrolment{At: s.ports.Clock.Now(), SessionID: caller.ID})
	}, nothing)
	if err != nil {
		return Enrolment{}, err
	}
	s.notify(notices.AuthenticatorEnrolled, caller)
	return Enrolment{Secret: secret, URI: secret.URI(s.config.Issuer, person)}, nil
}

// Activate makes the caller's authenticator count from the next login on, and returns the recovery codes, which are shown once.
//
// fault.Forbidden with code insufficient_trust below FULL_TRUST; fault.Unauthenticated with code invalid_mfa for a wrong code;
// fault.Conflict when this session has not enrolled an authenticator within auth.EnrolmentTTL.
func (s *Service) Activate(ctx context.Context, caller auth.Session, code auth.OTP) ([]auth.OTP, error) {
	if err := trust.Require(caller.TrustLevel, auth.FullTrust); err != nil {
		return nil, err
	}
	recovery := secrets.NewRecoveryCodes(s.ports.Entropy)
	err := s.guarded(ctx, caller, func() error {
		return s.change(ctx, caller, "mfa_activate", func(a *auth.Account) error {
			return s.secondFactor.Activate(a, code, recovery, caller.ID, s.ports.Clock.Now())
		}, func(ctx context.Context) error { return s.settle(ctx, caller) })
	})
	if err != nil {
		return nil, err
	}
	s.notify(notices.AuthenticatorActivated, caller)
	return recovery, nil
}

// Disable takes the caller's authenticator and recovery codes away, for a code of either.
//
// fault.Forbidden with code insufficient_trust below FULL_TRUST; fault.Unauthenticated with code invalid_mfa for a wrong code;
// fault.Conflict when no authenticator is active.
func (s *Service) Disable(ctx context.Context, caller auth.Session, code auth.OTP) error {
	if err := trust.Require(caller.TrustLevel, auth.FullTrust); err != nil {
		return err
	}
	err := s.guarded(ctx, caller, func() error {
		return s.change(ctx, caller, "mfa_disable", func(a *auth.Account) error {
			if !a.MFA.Active {
				return fault.New(fault.Conflict, "", "no authenticator is active")
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
		}, func(ctx context.Context) error { return s.settle(ctx, caller) })
	})
	if err != nil {
		return err
	}
	s.notify(notices.AuthenticatorDisabled, caller)
	return nil
}

// nothing is for changes that change nothing else.
func nothing(context.Context) error { return nil }
