package stepup

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/trust"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/courier"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/throttle"
)

// Initiate makes a challenge for a session and sends its code; the person already has that of an
// authenticator.
//
// It returns fault.Forbidden with code insufficient_trust below UNVERIFIED, fault.Invalid with code
// validation_error for a method that the person or the service is not set up for, which is not
// counted (contract A-41), fault.Exhausted with code rate_limit_exceeded and the detail retryAfter
// beyond the limit, and fault.Unavailable when the code could not be delivered: then no challenge
// is open and the try is not counted (contract A-45).
func (s *Service) Initiate(ctx context.Context, session auth.Session, method auth.StepUpMethod) (Pending, error) {
	if err := trust.Require(session.TrustLevel, auth.Unverified); err != nil {
		return Pending{}, err
	}
	way, err := s.route(ctx, session.UserID, method)
	if err != nil {
		return Pending{}, err
	}
	verdict, err := s.try(ctx, session.UserID)
	if err != nil {
		return Pending{}, err
	}
	c := auth.Challenge{
		ID:        secrets.NewUUID[auth.ChallengeID](s.ports.Entropy),
		SessionID: session.ID, UserID: session.UserID, Method: method, State: auth.ChallengeOpen,
	}
	code := s.renew(&c)
	c.CreatedAt = s.ports.Clock.Now()
	err = s.ports.Transaction.Atomically(ctx, func(ctx context.Context) error {
		if err := s.ports.Challenges.Create(ctx, c); err != nil {
			return err
		}
		return s.ports.Trail.Record(ctx, event(&session, c.ID, true, map[string]any{"action": ActionInitiate, "method": string(method)}))
	})
	if err != nil {
		return Pending{}, errors.Join(err, s.giveBack(ctx, session.UserID, verdict))
	}
	if method == auth.AuthenticatorApp {
		return s.pending(&c), nil
	}
	if err := s.deliver(ctx, &session, &c, way.message(code, c.ExpiresAt), way.courier); err != nil {
		return Pending{}, errors.Join(err, s.giveBack(ctx, session.UserID, verdict))
	}
	return s.pending(&c), nil
}

// renew gives a challenge a new code, unless its code is the authenticator's, and its full time.
func (s *Service) renew(c *auth.Challenge) auth.OTP {
	c.ExpiresAt = s.ports.Clock.Now().Add(s.config.CodeTTL)
	if c.Method == auth.AuthenticatorApp {
		return ""
	}
	code := s.newCode()
	c.CodeHash = s.hashOf(c.ID, code)
	return code
}

// route is the way of a code to its person; none for a code that is not sent.
type route struct {
	courier   courier.Courier
	channel   courier.Channel
	recipient string
}

func (r route) message(code auth.OTP, expiresAt time.Time) courier.Message {
	return courier.Message{
		Kind: courier.OTP, Channel: r.channel, Recipient: r.recipient, Code: string(code), ExpiresAt: expiresAt,
	}
}

// route finds the way for a method, or says why there is none.
func (s *Service) route(ctx context.Context, user auth.UserID, method auth.StepUpMethod) (route, error) {
	account, err := s.ports.Accounts.Get(ctx, user)
	if err != nil {
		return route{}, err
	}
	var r route
	switch method {
	case auth.EmailOTP:
		r = route{s.ports.Couriers.Email, courier.Email, string(account.Email)}
	case auth.SMSOTP:
		r = route{s.ports.Couriers.SMS, courier.SMS, account.Phone}
	case auth.AuthenticatorApp:
		if !account.MFA.Active {
			return route{}, errMethod("needs an enrolled authenticator")
		}
		return route{}, nil
	default:
		return route{}, errMethod("is unknown")
	}
	switch {
	case r.courier == nil:
		return route{}, errMethod("is not set up on this service")
	case r.recipient == "":
		return route{}, errMethod("needs a telephone number")
	}
	return r, nil
}

func errMethod(problem string) error {
	return auth.InvalidField(auth.CodeValidation, "method", problem)
}

// try counts one code sent to a person.
func (s *Service) try(ctx context.Context, user auth.UserID) (throttle.Verdict, error) {
	v, err := s.ports.Throttle.Try(ctx, throttle.StepUpUser, string(user))
	if err != nil {
		return throttle.Verdict{}, err
	}
	if !v.Allowed && !v.Unlimited {
		return v, errUsedUp("too many codes were requested", v.Limit, v.RetryAfter(s.ports.Clock.Now()))
	}
	return v, nil
}

// giveBack takes back a try that led to no code.
func (s *Service) giveBack(ctx context.Context, user auth.UserID, v throttle.Verdict) error {
	if v.Unlimited {
		return nil
	}
	return s.ports.Throttle.GiveBack(context.WithoutCancel(ctx), throttle.StepUpUser, string(user), v)
}

// deliver sends a code, outside of any transaction. One that cannot be sent makes the challenge void, unless another resend has
// replaced the code meanwhile, or has delivered one that this code was to replace.
func (s *Service) deliver(
	ctx context.Context, session *auth.Session, c *auth.Challenge, m courier.Message, by courier.Courier,
) error {
	cause := by.Deliver(ctx, m)
	if cause == nil {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	err := s.ports.Transaction.Atomically(ctx, func(ctx context.Context) error {
		err := s.ports.Challenges.Update(ctx, c.ID, func(stored *auth.Challenge) error {
			if stored.State == auth.ChallengeOpen && bytes.Equal(stored.CodeHash, c.CodeHash) {
				stored.CodeHash, stored.Standby = stored.Standby, nil
				if len(stored.CodeHash) == 0 {
					stored.State = auth.ChallengeVoid
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		return s.ports.Trail.Record(ctx, event(session, c.ID, false, map[string]any{
			"action": ActionDeliver, "method": string(c.Method), "reason": ReasonUndelivered,
		}))
	})
	return errors.Join(fault.Wrap(fault.Unavailable, "", "the code could not be delivered", cause), err)
}
