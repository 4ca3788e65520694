package credentials

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/core/auth/trust"
	"github.com/tollgate-dev/tollgate/ports/secrets"
)

// EnrolAnother gives the caller a further authenticator with a name, which the same session must
// activate with ActivateAnother within auth.EnrolmentTTL (contract A-97). It requires a code of an
// authenticator, or a recovery code.
//
// The error is fault.Forbidden with code insufficient_trust below FULL_TRUST, fault.Invalid for a
// name that is empty or too long, fault.Unauthenticated with code invalid_mfa for a wrong code, and
// fault.Conflict if no authenticator is active or if there are already auth.MaxAuthenticators.
func (s *Service) EnrolAnother(
	ctx context.Context, caller auth.Session, name string, code auth.OTP,
) (Enrolment, error) {
	if err := trust.Require(caller.TrustLevel, auth.FullTrust); err != nil {
		return Enrolment{}, err
	}
	name, err := auth.ParsePasskeyName(name)
	if err != nil {
		return Enrolment{}, err
	}
	secret, nonce := secrets.NewTOTPSecret(s.ports.Entropy), secrets.NewNonce(s.ports.Entropy)
	var person auth.Email
	err = s.changeFactor(ctx, caller, factorChange{
		action: "mfa_enrol", notice: notices.AuthenticatorEnrolled, keep: true, name: &name,
		alter: func(a *auth.Account, now time.Time) error {
			if err := s.takeCode(a, code, now); err != nil {
				return err
			}
			person = a.Email
			return s.secondFactor.EnrolAnother(a, auth.Authenticator{
				Name: name, Enrolment: auth.Enrolment{At: now, SessionID: caller.ID},
			}, secret, nonce)
		},
		do: s.recordCode,
	})
	if err != nil {
		return Enrolment{}, err
	}
	return Enrolment{Secret: secret, URI: secret.URI(s.config.Issuer, person)}, nil
}

// ActivateAnother makes the authenticator of EnrolAnother active, with the errors of Activate, and
// ends the caller's other sessions. The recovery codes stay.
func (s *Service) ActivateAnother(ctx context.Context, caller auth.Session, code auth.OTP) error {
	if err := trust.Require(caller.TrustLevel, auth.FullTrust); err != nil {
		return err
	}
	var name string
	return s.changeFactor(ctx, caller, factorChange{
		action: "mfa_add", notice: notices.AuthenticatorAdded, name: &name,
		alter: func(a *auth.Account, now time.Time) (err error) {
			name, err = s.secondFactor.ActivateAnother(a, code, caller.ID, now)
			return err
		},
		do: func(_ context.Context, session auth.Session, now time.Time) error {
			return trust.RequireRecent(&session, now, s.config.ReauthenticationMaxAge+auth.EnrolmentTTL)
		},
	})
}

// RemoveAuthenticator removes one of several authenticators, and ends the caller's other sessions.
// It requires a code, and returns the errors of Disable, fault.NotFound if there is no authenticator
// with the id, and fault.Conflict if it is the only one: Disable removes that.
func (s *Service) RemoveAuthenticator(
	ctx context.Context, caller auth.Session, id auth.AuthenticatorID, code auth.OTP,
) error {
	if err := trust.Require(caller.TrustLevel, auth.FullTrust); err != nil {
		return err
	}
	var name string
	return s.changeFactor(ctx, caller, factorChange{
		action: "mfa_remove", notice: notices.AuthenticatorDropped, name: &name,
		alter: func(a *auth.Account, now time.Time) (err error) {
			if err := s.takeCode(a, code, now); err != nil {
				return err
			}
			name, err = a.MFA.RemoveAuthenticator(id)
			return err
		},
		do: s.recordCode,
	})
}

// RenewRecoveryCodes replaces the caller's recovery codes and returns the new ones, which are shown
// once. It requires a code, and returns the errors of Disable.
func (s *Service) RenewRecoveryCodes(ctx context.Context, caller auth.Session, code auth.OTP) ([]auth.OTP, error) {
	if err := trust.Require(caller.TrustLevel, auth.FullTrust); err != nil {
		return nil, err
	}
	recovery := secrets.NewRecoveryCodes(s.ports.Entropy)
	err := s.changeFactor(ctx, caller, factorChange{
		action: "recovery_codes", notice: notices.RecoveryCodesRenewed, keep: true,
		alter: func(a *auth.Account, now time.Time) error {
			if err := s.takeCode(a, code, now); err != nil {
				return err
			}
			return s.secondFactor.RenewRecovery(a, recovery)
		},
		do: s.recordCode,
	})
	if err != nil {
		return nil, err
	}
	return recovery, nil
}
