package authapi

import (
	"bytes"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/jsonbody"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/fault"
)

func (a *API) changePassword(c *fiber.Ctx, caller auth.Session, b *jsonbody.Object) error {
	present, presentErr := auth.NewPassword("currentPassword", b.Text("currentPassword"))
	next, nextErr := auth.NewPassword("newPassword", b.Text("newPassword"))
	// the use case, which also checks the new password, is not called
	if fieldError(b.Problems(), presentErr, nextErr) != nil {
		return fieldError(b.Problems(), presentErr, nextErr, next.Check("newPassword"))
	}
	err := a.use.Credentials.ChangePassword(c.UserContext(), caller, present, next)
	return reply(c, err, messageResponse{"the password is changed; other sessions are ended"})
}

// forgotPassword answers the same for every address, in the same time.
func (a *API) forgotPassword(c *fiber.Ctx, b *jsonbody.Object) error {
	email, err := auth.ParseEmail(b.Text("email"))
	if err := fieldError(b.Problems(), err); err != nil {
		return err
	}
	a.use.Joining.Forgot(email)
	return sendJSON(c, messageResponse{"if the address has an account, a link to set a new password is on its way"})
}

func (a *API) resetPassword(c *fiber.Ctx, b *jsonbody.Object) error {
	secret := auth.LinkSecret(b.Text("token"))
	next, err := auth.NewPassword("newPassword", b.Text("newPassword"))
	if err := fieldError(b.Problems(), err); err != nil {
		return err
	}
	err = a.use.Joining.Reset(c.UserContext(), secret, next)
	if fault.Is(err, fault.NotFound) {
		err = auth.InvalidField(auth.CodeInvalidInput, "token", "is unknown, used or expired")
	}
	return reply(c, err, messageResponse{"the password is set; all sessions are ended"})
}

type enrolResponse struct {
	Secret     string `json:"secret"`
	OTPAuthURI string `json:"otpauthUri"`
}

// enrolMFA needs no request body. One may have the present password, for a session whose last
// password or code is too old.
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
	e, err := a.use.Credentials.Enrol(c.UserContext(), caller, present)
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
	recovery, err := a.use.Credentials.Activate(c.UserContext(), caller, code)
	if err != nil {
		return err
	}
	return sendJSON(c, activateResponse{each.Strings(recovery)})
}

func (a *API) disableMFA(c *fiber.Ctx, caller auth.Session) error {
	code, err := readMFACode(c)
	if err != nil {
		return err
	}
	err = a.use.Credentials.Disable(c.UserContext(), caller, code)
	return reply(c, err, messageResponse{"the authenticator is disabled"})
}

func readMFACode(c *fiber.Ctx) (auth.OTP, error) {
	b, err := readBody(c)
	if err != nil {
		return "", err
	}
	code := auth.OTP(b.Text("mfaCode"))
	return code, fieldError(b.Problems())
}
