package people

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/secrets"
)

// EnrolMFA gives a person an authenticator, which ActivateMFA must activate within
// auth.EnrolmentTTL. It replaces one that is not active. The error is fault.Conflict if one is
// active, and fault.NotFound for an address without an account.
func (s *Service) EnrolMFA(ctx context.Context, email auth.Email) (auth.TOTPSecret, error) {
	secret, nonce := secrets.NewTOTPSecret(s.ports.Entropy), secrets.NewNonce(s.ports.Entropy)
	err := s.changeAccount(ctx, email,
		accountChange{category: audit.CredentialChange, action: "mfa_enrol", alter: func(a *auth.Account) error {
			return s.secondFactor.Enrol(a, secret, nonce, auth.Enrolment{At: s.ports.Clock.Now()})
		}})
	return secret, err
}

// ActivateMFA activates an authenticator of EnrolMFA with a code of it, and returns the recovery
// codes. The error is fault.Unauthenticated with code invalid_mfa for a wrong code, fault.Conflict
// if there is no authenticator to activate or the person enrolled it, and fault.NotFound for an
// address without an account.
func (s *Service) ActivateMFA(ctx context.Context, email auth.Email, code auth.OTP) ([]auth.OTP, error) {
	recovery := secrets.NewRecoveryCodes(s.ports.Entropy)
	err := s.changeAccount(ctx, email, accountChange{
		category: audit.CredentialChange, action: "mfa_activate", after: s.dropPending,
		alter: func(a *auth.Account) error {
			return s.secondFactor.Activate(a, code, recovery, "", s.ports.Clock.Now())
		},
	})
	if err != nil {
		return nil, err
	}
	return recovery, nil
}

// DisableMFA removes the authenticator and recovery codes of a person who has lost both, ends their
// sessions, and sends them a notice. The error is fault.Conflict if there is no authenticator, and fault.NotFound for an address without an
// account.
func (s *Service) DisableMFA(ctx context.Context, email auth.Email) error {
	return s.changeAccount(ctx, email,
		accountChange{category: audit.CredentialChange, action: "mfa_disable", after: s.dropPending,
			endReason: auth.EndSecondFactor, notice: notices.AuthenticatorRemoved,
			alter: func(a *auth.Account) error {
				if len(a.MFA.Secret) == 0 {
					return fault.New(fault.Conflict, "there is no authenticator")
				}
				a.MFA = auth.MFA{}
				return nil
			}})
}

// dropLinks removes the links of a person.
func (s *Service) dropLinks(ctx context.Context, a *auth.Account) error {
	return s.ports.Links.RemoveAll(ctx, a.ID, auth.LinkInvitation, auth.LinkReset)
}

// dropLogins ends the logins that wait for a second factor, and removes the links.
func (s *Service) dropLogins(ctx context.Context, a *auth.Account) error {
	if err := s.dropPending(ctx, a); err != nil {
		return err
	}
	return s.dropLinks(ctx, a)
}

// dropPending ends the logins that wait for a second factor.
func (s *Service) dropPending(ctx context.Context, a *auth.Account) error {
	return s.ports.Pending.RemoveAll(ctx, a.ID)
}
