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

// Initiate creates a challenge for a session and sends its code, unless the method is an
// authenticator or COMPANY.
//
// It returns fault.Forbidden with code insufficient_trust below UNVERIFIED, fault.Invalid with code
// validation_error for a method that is not configured for the person or the service, which is not
// counted (contract A-41), fault.Exhausted with code rate_limit_exceeded and the detail retryAfter
// beyond the limit, and fault.Unavailable if the code could not be delivered: then no challenge is
// open and the request is not counted (contract A-45).
func (s *Service) Initiate(ctx context.Context, session auth.Session, method auth.StepUpMethod) (Pending, error) {
	if err := trust.Require(session.TrustLevel, auth.Unverified); err != nil {
		return Pending{}, err
	}
	route, err := s.findRoute(ctx, &session, method)
	if err != nil {
		return Pending{}, err
	}
	verdict, err := s.countSend(ctx, session.UserID)
	if err != nil {
		return Pending{}, err
	}
	c := auth.Challenge{
		ID:        secrets.NewUUID[auth.ChallengeID](s.ports.Entropy),
		SessionID: session.ID, UserID: session.UserID, Method: method, State: auth.ChallengeOpen,
	}
	if method == auth.PasskeyMethod {
		c.Attempts = s.config.Attempts - 1 // a ceremony is good once (contract K-3)
	}
	code := s.renewCode(&c)
	c.CreatedAt = s.ports.Clock.Now()
	err = s.ports.Transaction.Atomically(ctx, func(ctx context.Context) error {
		if err := s.ports.Challenges.Create(ctx, c); err != nil {
			return err
		}
		return s.ports.Trail.RecordChanges(ctx, newStep(ActionInitiate, &session, &c))
	})
	if err != nil {
		return Pending{}, errors.Join(err, s.uncountSend(ctx, session.UserID, verdict))
	}
	if !method.Sends() {
		pending := s.newPending(&c)
		pending.Opens = code
		return pending, nil
	}
	if err := s.deliverCode(ctx, &session, &c, route.newMessage(code, c.ExpiresAt), route.courier); err != nil {
		return Pending{}, errors.Join(err, s.uncountSend(ctx, session.UserID, verdict))
	}
	return s.newPending(&c), nil
}

// renewCode gives a challenge its full lifetime and a new code, which it returns. It returns the
// empty code for an authenticator.
func (s *Service) renewCode(c *auth.Challenge) auth.OTP {
	c.ExpiresAt = s.ports.Clock.Now().Add(s.config.CodeTTL)
	var code auth.OTP
	switch {
	case c.Method == auth.CompanySignIn:
		code = auth.OTP(secrets.NewSecret[auth.LinkSecret](s.ports.Entropy))
	case !c.Method.Sends():
		return ""
	default:
		code = s.newCode()
	}
	c.CodeHash = s.hashCode(c.ID, code)
	return code
}

// codeRoute is the courier and recipient of a code. It is the zero value for a code that is not
// sent.
type codeRoute struct {
	courier   courier.Courier
	channel   courier.Channel
	recipient string
}

func (r codeRoute) newMessage(code auth.OTP, expiresAt time.Time) courier.Message {
	return courier.Message{
		Kind: courier.OTP, Channel: r.channel, Recipient: r.recipient, Code: string(code), ExpiresAt: expiresAt,
	}
}

// Route is a method that is available to a person, with where its codes go: an e-mail address or a
// telephone number, or nowhere for an authenticator. For COMPANY it has the name of the provider.
type Route struct {
	Method    auth.StepUpMethod
	Recipient string
}

// Routes returns the methods that are available to a session, those without a message first.
func (s *Service) Routes(ctx context.Context, session auth.Session) ([]Route, error) {
	var routes []Route
	for _, method := range [...]auth.StepUpMethod{
		auth.PasskeyMethod, auth.CompanySignIn, auth.AuthenticatorApp, auth.EmailOTP, auth.SMSOTP,
	} {
		r, err := s.findRoute(ctx, &session, method)
		switch {
		case err == nil:
			routes = append(routes, Route{method, r.recipient})
		case !fault.Is(err, fault.Invalid):
			return nil, err
		}
	}
	return routes, nil
}

// findRoute returns the route of a method, or an error of errMethod if the method is not available.
func (s *Service) findRoute(ctx context.Context, session *auth.Session, method auth.StepUpMethod) (codeRoute, error) {
	if method == auth.PasskeyMethod && s.ports.Passkeys != nil {
		all, err := s.ports.Passkeys.List(ctx, session.UserID)
		if err == nil && len(auth.CredentialsOf(all)) == 0 {
			err = errMethod("needs a passkey")
		}
		return codeRoute{}, err
	}
	if method == auth.CompanySignIn {
		p, _, err := s.findCompany(ctx, session.UserID)
		return codeRoute{recipient: p.DisplayName}, err
	}
	account, err := s.ports.Accounts.Get(ctx, session.UserID)
	if err != nil {
		return codeRoute{}, err
	}
	if method == auth.SMSOTP && account.PhonePending && session.TrustLevel != auth.FullTrust {
		return codeRoute{}, errMethod("needs a telephone number that you have confirmed: use another method, and confirm it then")
	}
	return s.routeOf(&account, method)
}

func (s *Service) routeOf(account *auth.Account, method auth.StepUpMethod) (codeRoute, error) {
	var r codeRoute
	switch method {
	case auth.EmailOTP:
		r = codeRoute{s.ports.Couriers.Email, courier.Email, string(account.Email)}
	case auth.SMSOTP:
		r = codeRoute{s.ports.Couriers.SMS, courier.SMS, account.Phone}
	case auth.AuthenticatorApp:
		if !account.MFA.Active {
			return codeRoute{}, errMethod("needs an enrolled authenticator")
		}
		return codeRoute{}, nil
	default:
		return codeRoute{}, errMethod("is unknown")
	}
	switch {
	case r.courier == nil:
		return codeRoute{}, errMethod("is not set up on this service")
	case r.recipient == "":
		return codeRoute{}, errMethod("needs a telephone number")
	}
	return r, nil
}

func errMethod(problem string) error {
	return auth.InvalidField(auth.CodeValidation, "method", problem)
}

// countSend counts one code sent to a person. It returns fault.Exhausted beyond the limit.
func (s *Service) countSend(ctx context.Context, user auth.UserID) (throttle.Verdict, error) {
	v, err := s.ports.Throttle.Try(ctx, throttle.StepUpUser, string(user))
	if err != nil {
		return throttle.Verdict{}, err
	}
	if !v.Allowed && !v.Unlimited {
		return v, errLimitReached("too many codes were requested", v.Limit, v.RetryAfter(s.ports.Clock.Now()))
	}
	return v, nil
}

// uncountSend reverts countSend for a code that was not sent.
func (s *Service) uncountSend(ctx context.Context, user auth.UserID, v throttle.Verdict) error {
	if v.Unlimited {
		return nil
	}
	return s.ports.Throttle.GiveBack(context.WithoutCancel(ctx), throttle.StepUpUser, string(user), v)
}

// deliverCode sends a code, outside of any transaction. If it cannot be sent, the challenge becomes
// void, unless another resend has replaced the code in the meantime, or has delivered a code that
// this one was to replace.
func (s *Service) deliverCode(
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
		return s.ports.Trail.RecordChanges(ctx, newFailure(ActionDeliver, session, c, ReasonUndelivered))
	})
	return errors.Join(fault.Wrap(fault.Unavailable, "the code could not be delivered", cause), err)
}
