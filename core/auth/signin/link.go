package signin

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// Admitted is a person who gets a session without a password or a provider.
type Admitted struct {
	Account auth.Account
	Factor  auth.Factor       // what the person has shown; empty for nothing that counts as a second factor
	Most    auth.TrustLevel   // that the session gets; zero without a limit
	Login   auth.CompanyLogin // from which the session comes too; otherwise zero
}

// StartTrusted begins a session for the person whom admit returns, in one transaction with admit.
// The session is at FULL_TRUST and its device confirmed, as after a step-up, so admit must take a
// link that only the person has. It returns the error of admit, and fault.Unavailable if the
// database is not available. Admit may be called more than once.
func (s *Service) StartTrusted(
	ctx context.Context, from Origin, admit func(ctx context.Context) (auth.Account, error),
) (Result, error) {
	return s.StartAdmitted(ctx, from, func(ctx context.Context) (Admitted, error) {
		account, err := admit(ctx)
		return Admitted{Account: account, Factor: auth.FactorLink}, err
	})
}

// StartAdmitted is StartTrusted for a person with another factor or without one: then score and cap
// hold as after a password.
func (s *Service) StartAdmitted(
	ctx context.Context, from Origin, admit func(ctx context.Context) (Admitted, error),
) (Result, error) {
	attempt := loginAttempt{accountKnown: true}
	return s.atomically(ctx, from, &attempt, func(ctx context.Context) (step, error) {
		person, err := admit(ctx)
		if err != nil {
			return step{}, err
		}
		attempt.account, attempt.identity = person.Account, s.deviceIdentity(from.Device, person.Account.ID)
		attempt.factor, attempt.most, attempt.company = person.Factor, person.Most, person.Login
		if err := s.loadDevice(ctx, &attempt, from.DeviceToken); err != nil {
			return step{}, err
		}
		now := s.ports.Clock.Now()
		session, newDevice, err := s.createSession(ctx, from, &attempt, now)
		if err != nil {
			return step{}, err
		}
		r, err := s.issueTokens(ctx, &session, &attempt, now)
		return step{r, newDevice && person.Factor != auth.FactorLink}, err
	})
}
