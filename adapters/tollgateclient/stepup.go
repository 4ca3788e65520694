package tollgateclient

import (
	"context"
	"net/http"
)

// Challenge is a step-up that waits for its code.
type Challenge struct {
	ID                string `json:"challengeId"`
	Method            string `json:"method"`
	ExpiresAt         string `json:"expiresAt"`
	AttemptsRemaining int    `json:"attemptsRemaining"`
}

// StepUp begins a step-up by EMAIL_OTP, SMS_OTP or AUTHENTICATOR_APP.
func (c *Client) BeginStepUp(ctx context.Context, token, method string) (Challenge, error) {
	var a Challenge
	_, err := c.send(ctx, call{
		method: http.MethodPost, path: "/auth/step-up/initiate", token: token, body: map[string]string{"method": method}, member: "challengeId",
	}, &a)
	return a, err
}

// Raised is what a session has gained by a step-up.
type StepUpResult struct {
	TrustLevel  string
	DeviceToken string // new; empty when the machine keeps what it has
}

// VerifyStepUp answers a challenge. It raises the session that began it, whose tokens stay.
func (c *Client) VerifyStepUp(ctx context.Context, challenge, code string) (StepUpResult, error) {
	var a struct {
		NewTrustLevel string `json:"newTrustLevel"`
	}
	header, err := c.send(ctx, call{
		method: http.MethodPost, path: "/auth/step-up/verify", body: map[string]string{"challengeId": challenge, "otp": code},
	}, &a)
	if err != nil {
		return StepUpResult{}, err
	}
	return StepUpResult{a.NewTrustLevel, header.Get(deviceTokenHeader)}, nil
}

// ResendStepUp has a new code sent, which makes the old one void.
func (c *Client) ResendStepUp(ctx context.Context, challenge string) error {
	_, err := c.send(ctx, call{
		method: http.MethodPost, path: "/auth/step-up/resend", body: map[string]string{"challengeId": challenge},
	}, nil)
	return err
}
