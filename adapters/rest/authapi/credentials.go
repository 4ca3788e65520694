package authapi

import (
	"context"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/credentials"
)

// Credentials changes what a person signs in with. *credentials.Service is one;
// the errors are documented there.
type Credentials interface {
	ChangePassword(ctx context.Context, caller auth.Session, present, next auth.Password) error
	Enrol(ctx context.Context, caller auth.Session) (credentials.Enrolment, error)
	Activate(ctx context.Context, caller auth.Session, code auth.OTP) ([]auth.OTP, error)
	Disable(ctx context.Context, caller auth.Session, code auth.OTP) error
}

func (a *API) changePassword(c *fiber.Ctx, caller auth.Session) error {
	b, err := readBody(c)
	if err != nil {
		return err
	}
	present, presentErr := auth.NewPassword("currentPassword", b.text("currentPassword"))
	next, nextErr := auth.NewPassword("newPassword", b.text("newPassword"))
	if b.err(presentErr, nextErr) != nil {
		return b.err(next.Check("newPassword")) // the use case is not asked now, which would tell this too
	}
	if err := a.credentials.ChangePassword(c.UserContext(), caller, present, next); err != nil {
		return err
	}
	return answer(c, done{"the password is changed, other sessions are ended"})
}

type enrolAnswer struct {
	Secret     string `json:"secret"`
	OTPAuthURI string `json:"otpauthUri"`
}

// enrol takes no body: there is nothing to say.
func (a *API) enrol(c *fiber.Ctx, caller auth.Session) error {
	e, err := a.credentials.Enrol(c.UserContext(), caller)
	if err != nil {
		return err
	}
	return answer(c, enrolAnswer{e.Secret.Base32(), e.URI})
}

type activateAnswer struct {
	RecoveryCodes []string `json:"recoveryCodes"`
}

func (a *API) activate(c *fiber.Ctx, caller auth.Session) error {
	code, err := readMFACode(c)
	if err != nil {
		return err
	}
	recovery, err := a.credentials.Activate(c.UserContext(), caller, code)
	if err != nil {
		return err
	}
	shown := activateAnswer{make([]string, len(recovery))}
	for i, one := range recovery {
		shown.RecoveryCodes[i] = string(one)
	}
	return answer(c, shown)
}

func (a *API) disableMFA(c *fiber.Ctx, caller auth.Session) error {
	code, err := readMFACode(c)
	if err != nil {
		return err
	}
	if err := a.credentials.Disable(c.UserContext(), caller, code); err != nil {
		return err
	}
	return answer(c, done{"the authenticator is disabled"})
}

func readMFACode(c *fiber.Ctx) (auth.OTP, error) {
	b, err := readBody(c)
	if err != nil {
		return "", err
	}
	code := auth.OTP(b.text("mfaCode"))
	return code, b.err()
}
