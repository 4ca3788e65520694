package authapi

import (
	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/jsonbody"
	"github.com/tollgate-dev/tollgate/adapters/rest/passkeyjson"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/stepup"
	"github.com/tollgate-dev/tollgate/ports/webauthn"
)

type challenge struct {
	ChallengeID       auth.ChallengeID     `json:"challengeId"`
	Method            auth.StepUpMethod    `json:"method"`
	ExpiresAt         string               `json:"expiresAt"`
	AttemptsRemaining int                  `json:"attemptsRemaining"`
	PublicKey         *passkeyjson.Request `json:"publicKey,omitempty"` // of PASSKEY
	URL               string               `json:"url,omitempty"`       // of COMPANY
}

func (a *API) initiateStepUp(c *fiber.Ctx, caller auth.Session, b *jsonbody.Object) error {
	method, err := auth.ParseStepUpMethod(b.Text("method"))
	if err := fieldError(b.Problems(), err); err != nil {
		return err
	}
	var party webauthn.Party
	if method == auth.PasskeyMethod {
		if party, err = a.party(c); err != nil {
			return err
		}
	}
	p, err := a.use.StepUp.Initiate(c.UserContext(), caller, method)
	if err != nil {
		return err
	}
	shown := challenge{
		ChallengeID: p.ID, Method: p.Method, ExpiresAt: FormatTime(p.ExpiresAt), AttemptsRemaining: p.AttemptsRemaining,
	}
	if p.Opens != "" {
		shown.URL = a.use.Companies.StepUpAddress(&p)
	}
	if method == auth.PasskeyMethod {
		o, err := a.use.Passkeys.StepUpOptions(c.UserContext(), party, caller.UserID, p.ID)
		if err != nil {
			return err
		}
		shown.PublicKey = passkeyjson.NewRequest(o)
	}
	return sendJSON(c, shown)
}

type verifyResponse struct {
	Success       bool   `json:"success"`
	NewTrustLevel string `json:"newTrustLevel"`
	Message       string `json:"message"`
	AccessToken   string `json:"accessToken"`
}

func (a *API) verifyStepUp(c *fiber.Ctx, b *jsonbody.Object) error {
	id, err := auth.ParseUUID[auth.ChallengeID]("challengeId", b.Text("challengeId"))
	in := stepup.Answer{ID: id, TrustDevice: b.Flag("trustDevice")}
	if b.Has("credential") {
		in.Response = b.Raw("credential")
	} else {
		in.Code = auth.OTP(b.Text("otp"))
	}
	if err := fieldError(b.Problems(), err); err != nil {
		return err
	}
	if in.Response != nil {
		caller, err := a.use.Access.CheckLevel(c.UserContext(), auth.AccessToken(rest.BearerToken(c)), auth.Unverified)
		if err != nil {
			return err
		}
		in.Session = caller.ID
		if in.Party, err = a.party(c); err != nil {
			return err
		}
	}
	p, err := a.use.StepUp.Verify(c.UserContext(), in)
	if err != nil {
		return err
	}
	setDeviceToken(c, p.DeviceToken)
	return sendJSON(c, verifyResponse{true, p.TrustLevel.String(), "the session is verified", string(p.AccessToken)})
}

type resendResponse struct {
	Message   string `json:"message"`
	ExpiresAt string `json:"expiresAt"`
}

func (a *API) resendStepUp(c *fiber.Ctx, b *jsonbody.Object) error {
	id, err := auth.ParseUUID[auth.ChallengeID]("challengeId", b.Text("challengeId"))
	if err := fieldError(b.Problems(), err); err != nil {
		return err
	}
	p, err := a.use.StepUp.Resend(c.UserContext(), id)
	return reply(c, err, resendResponse{"a new code was sent", FormatTime(p.ExpiresAt)})
}
