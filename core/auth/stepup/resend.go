package stepup

import (
	"bytes"
	"context"
	"errors"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// Resend sends a new code for an open challenge and gives it its full time again. The old code is
// void from then on, the tries are not renewed, and a resend counts among the codes of the person
// (contract A-44).
//
// It returns fault.Invalid with code invalid_input for a challenge of an authenticator, whose code
// is not sent, which is not counted; fault.NotFound when the challenge is unknown, used, expired or
// void, or its session has ended; fault.Exhausted with code rate_limit_exceeded and the detail
// retryAfter when no try is left or too many codes were sent; fault.Unavailable when the code could
// not be delivered. In that case the resend is not counted, and the challenge is void unless
// another resend at the same time was delivered, whose code is good (contract A-45).
func (s *Service) Resend(ctx context.Context, id auth.ChallengeID) (Pending, error) {
	c, session, err := s.resendable(ctx, id)
	if err != nil {
		return Pending{}, err
	}
	if c.Method == auth.AuthenticatorApp {
		return Pending{}, auth.InvalidField(auth.CodeInvalidInput, "challengeId", "waits for a code of the authenticator, which is not sent")
	}
	way, err := s.route(ctx, c.UserID, c.Method)
	if err != nil {
		return Pending{}, err
	}
	verdict, err := s.try(ctx, c.UserID)
	if err != nil {
		return Pending{}, err
	}
	code, err := s.replace(ctx, &c, &session)
	if err != nil {
		return Pending{}, errors.Join(err, s.giveBack(ctx, c.UserID, verdict))
	}
	if err := s.deliver(ctx, &session, &c, way.message(code, c.ExpiresAt), way.courier); err != nil {
		return Pending{}, errors.Join(err, s.giveBack(ctx, c.UserID, verdict))
	}
	return s.pending(&c), s.confirmDelivery(ctx, &c)
}

// confirmDelivery notes that a resent code was delivered. Where another resend has replaced it meanwhile, it stands by for the
// case that the newer code cannot be delivered, or takes the place of one that could not be.
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

// resendable reads a challenge that may get a new code, and its session.
func (s *Service) resendable(ctx context.Context, id auth.ChallengeID) (auth.Challenge, auth.Session, error) {
	c, err := s.ports.Challenges.Get(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return auth.Challenge{}, auth.Session{}, auth.NoSuch("challenge")
	}
	if err != nil {
		return auth.Challenge{}, auth.Session{}, err
	}
	if err := s.open(&c); err != nil {
		return auth.Challenge{}, auth.Session{}, err
	}
	session, err := s.ports.Sessions.Get(ctx, c.SessionID)
	if err == nil && !session.Active(s.ports.Clock.Now()) {
		err = auth.NoSuch("challenge")
	}
	return c, session, err
}

// open tells whether a challenge may get a new code.
func (s *Service) open(c *auth.Challenge) error {
	now := s.ports.Clock.Now()
	switch {
	case c.State != auth.ChallengeOpen, !now.Before(c.ExpiresAt):
		return auth.NoSuch("challenge")
	case c.Attempts >= s.config.Attempts:
		return s.errNoTry(c.ExpiresAt.Sub(now))
	}
	return nil
}

// replace stores a new code in the place of the old one.
func (s *Service) replace(ctx context.Context, c *auth.Challenge, session *auth.Session) (auth.OTP, error) {
	var code auth.OTP
	err := s.ports.Transaction.Atomically(ctx, func(ctx context.Context) error {
		err := s.ports.Challenges.Update(ctx, c.ID, func(stored *auth.Challenge) error {
			if err := s.open(stored); err != nil {
				return err
			}
			code, stored.Standby = s.renew(stored), nil
			*c = *stored
			return nil
		})
		if err != nil {
			return err
		}
		return s.ports.Trail.Record(ctx, event(session, c.ID, true, map[string]any{
			"action": ActionResend, "method": string(c.Method),
		}))
	})
	return code, err
}
