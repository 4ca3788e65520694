package tollgateclient

import (
	"context"
	"net/http"
)

// Challenge is a step-up that is waiting for its code.
type Challenge struct {
	ID                string `json:"challengeId"`
	Method            string `json:"method"`
	ExpiresAt         string `json:"expiresAt"`
	AttemptsRemaining int    `json:"attemptsRemaining"`
	URL               string `json:"url"` // to open, of COMPANY
}

// BeginStepUp starts a step-up with the method EMAIL_OTP, SMS_OTP, AUTHENTICATOR_APP or COMPANY.
func (c *Client) BeginStepUp(ctx context.Context, token, method string) (Challenge, error) {
	var a Challenge
	_, err := c.send(ctx, call{
		method: http.MethodPost, path: "/auth/step-up/initiate", token: token, body: map[string]string{
			"method": method,
		}, member: "challengeId",
	}, &a)
	return a, err
}

// StepUpResult is the result of a completed step-up.
type StepUpResult struct {
	TrustLevel  string
	DeviceToken string // new token; empty if the machine keeps its token
}

// VerifyStepUp completes a challenge with its code. It raises the trust level of the session that
// started the challenge; the tokens of the session stay valid.
func (c *Client) VerifyStepUp(ctx context.Context, challenge, code string) (StepUpResult, error) {
	var a struct {
		NewTrustLevel string `json:"newTrustLevel"`
	}
	header, err := c.send(ctx, call{
		method: http.MethodPost, path: "/auth/step-up/verify", body: map[string]string{
			"challengeId": challenge, "otp": code,
		},
	}, &a)
	if err != nil {
		return StepUpResult{}, err
	}
	return StepUpResult{a.NewTrustLevel, header.Get(deviceTokenHeader)}, nil
}

// ResendStepUp requests a new code, which replaces the old one.
func (c *Client) ResendStepUp(ctx context.Context, challenge string) error {
	_, err := c.send(ctx, call{
		method: http.MethodPost, path: "/auth/step-up/resend", body: map[string]string{"challengeId": challenge},
	}, nil)
	return err
}
