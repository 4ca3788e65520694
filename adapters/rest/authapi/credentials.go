package authapi

import (
	"bytes"
	"context"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/credentials"
)

// Credentials changes the credentials of a user. *credentials.Service implements it and documents
// the errors.
type Credentials interface {
	ChangePassword(ctx context.Context, caller auth.Session, present, next auth.Password) error
	Enrol(ctx context.Context, caller auth.Session, present auth.Password) (credentials.Enrolment, error)
	Activate(ctx context.Context, caller auth.Session, code auth.OTP) ([]auth.OTP, error)
	Disable(ctx context.Context, caller auth.Session, code auth.OTP) error
}

func (a *API) changePassword(c *fiber.Ctx, caller auth.Session) error {
	b, err := readBody(c)
	if err != nil {
		return err
	}
	present, presentErr := auth.NewPassword("currentPassword", b.Text("currentPassword"))
	next, nextErr := auth.NewPassword("newPassword", b.Text("newPassword"))
	if fieldError(b.Problems(), presentErr, nextErr) != nil { // the use case, which also checks the new password, is not called
		return fieldError(b.Problems(), presentErr, nextErr, next.Check("newPassword"))
	}
	if err := a.credentials.ChangePassword(c.UserContext(), caller, present, next); err != nil {
		return err
	}
	return sendJSON(c, messageResponse{"the password is changed; other sessions are ended"})
}

type enrolResponse struct {
	Secret     string `json:"secret"`
	OTPAuthURI string `json:"otpauthUri"`
}

// enrolMFA needs no request body. One may have the present password, for a session whose last password or
// code is too old.
func (a *API) enrolMFA(c *fiber.Ctx, caller auth.Session) error {
	var present auth.Password
	if len(bytes.TrimSpace(c.Body())) > 0 {
		b, err := readBody(c)
		if err != nil {
			return err
		}
		if b.Has("currentPassword") {
			present, err = auth.NewPassword("currentPassword", b.PresentText("currentPassword"))
		}
		if err := fieldError(b.Problems(), err); err != nil {
			return err
		}
	}
	e, err := a.credentials.Enrol(c.UserContext(), caller, present)
	if err != nil {
		return err
	}
	return sendJSON(c, enrolResponse{e.Secret.Base32(), e.URI})
}

type activateResponse struct {
	RecoveryCodes []string `json:"recoveryCodes"`
}

func (a *API) activateMFA(c *fiber.Ctx, caller auth.Session) error {
	code, err := readMFACode(c)
	if err != nil {
		return err
	}
	recovery, err := a.credentials.Activate(c.UserContext(), caller, code)
	if err != nil {
		return err
	}
	shown := activateResponse{make([]string, len(recovery))}
	for i, one := range recovery {
		shown.RecoveryCodes[i] = string(one)
	}
	return sendJSON(c, shown)
}

func (a *API) disableMFA(c *fiber.Ctx, caller auth.Session) error {
	code, err := readMFACode(c)
	if err != nil {
		return err
	}
	if err := a.credentials.Disable(c.UserContext(), caller, code); err != nil {
		return err
	}
	return sendJSON(c, messageResponse{"the authenticator is disabled"})
}

func readMFACode(c *fiber.Ctx) (auth.OTP, error) {
	b, err := readBody(c)
	if err != nil {
		return "", err
	}
	code := auth.OTP(b.Text("mfaCode"))
	return code, fieldError(b.Problems())
}
