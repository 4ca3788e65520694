package signin

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// StartTrusted begins a session for the person whom admit returns, in one transaction with admit.
// The session is at FULL_TRUST and its device confirmed, as after a step-up, so admit must take a
// link that only the person has. It returns the error of admit, and fault.Unavailable if the
// database is not available. Admit may be called more than once.
func (s *Service) StartTrusted(
	ctx context.Context, from Origin, admit func(ctx context.Context) (auth.Account, error),
) (Result, error) {
	attempt := loginAttempt{accountKnown: true, factor: auth.FactorLink}
	return s.atomically(ctx, from, &attempt, func(ctx context.Context) (step, error) {
		account, err := admit(ctx)
		if err != nil {
			return step{}, err
		}
		attempt.account, attempt.identity = account, s.deviceIdentity(from.Device, account.ID)
		now := s.ports.Clock.Now()
		session, _, err := s.createSession(ctx, from, &attempt, now)
		if err != nil {
			return step{}, err
		}
		r, err := s.issueTokens(ctx, &session, &attempt, now)
		return step{Result: r}, err
	})
}
