package authapi

import (
	"context"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/stepup"
)

// StepUp raises a session's trust by a one-time code. *stepup.Service is one;
// the errors are documented there.
type StepUp interface {
	Initiate(ctx context.Context, session auth.Session, method auth.StepUpMethod) (stepup.Pending, error)
	Verify(ctx context.Context, id auth.ChallengeID, code auth.OTP) (stepup.Passed, error)
	Resend(ctx context.Context, id auth.ChallengeID) (stepup.Pending, error)
}

type challenge struct {
	ChallengeID       auth.ChallengeID  `json:"challengeId"`
	Method            auth.StepUpMethod `json:"method"`
	ExpiresAt         string            `json:"expiresAt"`
	AttemptsRemaining int               `json:"attemptsRemaining"`
}

func (a *API) initiate(c *fiber.Ctx, caller auth.Session) error {
	b, err := readBody(c)
	if err != nil {
		return err
	}
	method, err := auth.ParseStepUpMethod(b.text("method"))
	if err := b.err(err); err != nil {
		return err
	}
	p, err := a.stepUp.Initiate(c.UserContext(), caller, method)
	if err != nil {
		return err
	}
	return answer(c, challenge{p.ID, p.Method, instant(p.ExpiresAt), p.AttemptsRemaining})
}

type verifyAnswer struct {
	Success       bool   `json:"success"`
	NewTrustLevel string `json:"newTrustLevel"`
	Message       string `json:"message"`
}

func (a *API) verify(c *fiber.Ctx) error {
	b, err := readBody(c)
	if err != nil {
		return err
	}
	id, err := auth.ParseUUID[auth.ChallengeID]("challengeId", b.text("challengeId"))
	code := auth.OTP(b.text("otp"))
	if err := b.err(err); err != nil {
		return err
	}
	p, err := a.stepUp.Verify(c.UserContext(), id, code)
	if err != nil {
		return err
	}
	giveDeviceToken(c, p.DeviceToken)
	return answer(c, verifyAnswer{true, p.TrustLevel.String(), "the session is verified"})
}

type resendAnswer struct {
	Message   string `json:"message"`
	ExpiresAt string `json:"expiresAt"`
}

func (a *API) resend(c *fiber.Ctx) error {
	b, err := readBody(c)
	if err != nil {
		return err
	}
	id, err := auth.ParseUUID[auth.ChallengeID]("challengeId", b.text("challengeId"))
	if err := b.err(err); err != nil {
		return err
	}
	p, err := a.stepUp.Resend(c.UserContext(), id)
	if err != nil {
		return err
	}
	return answer(c, resendAnswer{"a new code was sent", instant(p.ExpiresAt)})
}
