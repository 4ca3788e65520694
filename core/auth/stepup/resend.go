package stepup

import (
	"bytes"
	"context"
	"errors"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// Resend sends a new code for an open challenge, which gets its full lifetime again. The old code
// is void from then on, the number of attempts is not reset, and a resend counts towards the codes
// of the person (contract A-44).
//
// It returns fault.Invalid with code invalid_input for a challenge of an authenticator, whose code
// is not sent, which is not counted; fault.NotFound if the challenge is unknown, used, expired or
// void, or its session has ended; fault.Exhausted with code rate_limit_exceeded and the detail
// retryAfter if no attempt is left or too many codes were sent; fault.Unavailable if the code could
// not be delivered. In that case the resend is not counted, and the challenge is void unless a
// concurrent resend was delivered, whose code is then valid (contract A-45).
func (s *Service) Resend(ctx context.Context, id auth.ChallengeID) (Pending, error) {
	c, session, err := s.loadResendable(ctx, id)
	if err != nil {
		return Pending{}, err
	}
	if !c.Method.Sends() {
		return Pending{}, auth.InvalidField(auth.CodeInvalidInput, "challengeId", "waits for something that is not sent")
	}
	route, err := s.findRoute(ctx, &session, c.Method)
	if err != nil {
		return Pending{}, err
	}
	verdict, err := s.countSend(ctx, c.UserID)
	if err != nil {
		return Pending{}, err
	}
	code, err := s.replaceCode(ctx, &c, &session)
	if err != nil {
		return Pending{}, errors.Join(err, s.uncountSend(ctx, c.UserID, verdict))
	}
	if err := s.deliverCode(ctx, &session, &c, route.newMessage(code, c.ExpiresAt), route.courier); err != nil {
		return Pending{}, errors.Join(err, s.uncountSend(ctx, c.UserID, verdict))
	}
	return s.newPending(&c), s.confirmDelivery(ctx, &c)
}

// confirmDelivery records that a resent code was delivered. If another resend has replaced the code
// in the meantime, the code becomes the standby for the case that the newer one cannot be
// delivered, or replaces one that could not be delivered.
func (s *Service) confirmDelivery(ctx context.Context, c *auth.Challenge) error {
	return s.ports.Challenges.Update(context.WithoutCancel(ctx), c.ID, func(stored *auth.Challenge) error {
		switch {
		case bytes.Equal(stored.CodeHash, c.CodeHash):
			stored.Standby = nil
		case stored.State == auth.ChallengeOpen:
			stored.Standby = c.CodeHash
		case stored.State == auth.ChallengeVoid:
			stored.CodeHash, stored.State = c.CodeHash, auth.ChallengeOpen
		}
		return nil
	})
}

// loadResendable returns a challenge and its session. The error is that of checkResendable, and
// fault.NotFound if the challenge does not exist or its session has ended.
func (s *Service) loadResendable(ctx context.Context, id auth.ChallengeID) (auth.Challenge, auth.Session, error) {
	c, err := s.ports.Challenges.Get(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return auth.Challenge{}, auth.Session{}, auth.NotFound("challenge")
	}
	if err != nil {
		return auth.Challenge{}, auth.Session{}, err
	}
	if err := s.checkResendable(&c); err != nil {
		return auth.Challenge{}, auth.Session{}, err
	}
	session, err := s.ports.Sessions.Get(ctx, c.SessionID)
	if err == nil && !session.Active(s.ports.Clock.Now()) {
		err = auth.NotFound("challenge")
	}
	return c, session, err
}

// checkResendable returns an error if a challenge must not get a new code.
func (s *Service) checkResendable(c *auth.Challenge) error {
	now := s.ports.Clock.Now()
	switch {
	case c.State != auth.ChallengeOpen, !auth.Alive(c.ExpiresAt, now, s.config.CodeTTL):
		return auth.NotFound("challenge")
	case c.Attempts >= s.config.Attempts:
		return s.errNoAttemptLeft(c.ExpiresAt.Sub(now))
	}
	return nil
}

// replaceCode replaces the code of a stored challenge and returns the new one.
func (s *Service) replaceCode(ctx context.Context, c *auth.Challenge, session *auth.Session) (auth.OTP, error) {
	return transaction.Do(ctx, s.ports.Transaction, func(ctx context.Context) (code auth.OTP, err error) {
		err = s.ports.Challenges.Update(ctx, c.ID, func(stored *auth.Challenge) error {
			if err := s.checkResendable(stored); err != nil {
				return err
			}
			code, stored.Standby = s.renewCode(stored), nil
			*c = *stored
			return nil
		})
		if err != nil {
			return "", err
		}
		return code, s.ports.Trail.RecordChanges(ctx, newStep(ActionResend, session, c))
	})
}
