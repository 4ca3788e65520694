package tollgateclient

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// deviceTokenHeader contains the device token in requests and responses of clients without cookies
// (contract A-37).
const deviceTokenHeader = "X-Device-Token" // #nosec G101 -- the name of a header

// Device is the description of a machine in a login (contract A-35).
type Device struct {
	UserAgent        string `json:"userAgent,omitempty"`
	ScreenResolution string `json:"screenResolution,omitempty"`
	Timezone         string `json:"timezone,omitempty"`
	Language         string `json:"language,omitempty"`
}

// Machine is a device with the token that proves its identity.
type Machine struct {
	Device Device
	Token  string // empty until a session on the device has passed a step-up or a second factor
}

// Tokens are the tokens of a session.
type Tokens struct {
	Access    string
	Refresh   string
	ExpiresIn time.Duration // of the access token
}

// SignedIn is the result of a login: a session, or, if MFAUser is set, the request for a second
// factor of that user.
type SignedIn struct {
	Tokens
	TrustLevel  string
	DeviceToken string // new token; empty if the machine keeps its token
	Email       string // of LoginByPairing only
	MFAUser     string
}

type tokenAnswer struct {
	AccessToken  string `json:"accessToken"`
	RefreshToken string `json:"refreshToken"`
	TrustLevel   string `json:"trustLevel"`
	ExpiresIn    int64  `json:"expiresIn"`
	RequiresMFA  bool   `json:"requiresMFA"`
	UserID       string `json:"userId"`
	Email        string `json:"email"`
}

// errNoTokens returns the error for a successful response without tokens.
func errNoTokens() error {
	return fault.New(fault.Internal, "the response of the service contains no tokens: check the address")
}

func (a tokenAnswer) sessionTokens() (Tokens, error) {
	if a.AccessToken == "" || a.RefreshToken == "" {
		return Tokens{}, errNoTokens()
	}
	return Tokens{a.AccessToken, a.RefreshToken, time.Duration(a.ExpiresIn) * time.Second}, nil
}

// Login signs in with a password. If the account has a second factor, continue with VerifyMFA.
func (c *Client) Login(ctx context.Context, email, password string, m Machine) (SignedIn, error) {
	return c.signIn(ctx, "/auth/login", map[string]any{"email": email, "password": password}, m)
}

// VerifyMFA completes a login with the code of a second factor.
func (c *Client) VerifyMFA(ctx context.Context, user, code string, m Machine) (SignedIn, error) {
	return c.signIn(ctx, "/auth/mfa/verify", map[string]any{"userId": user, "mfaCode": code}, m)
}

// Pairing is the request of a command for a session, which its person approves in a browser (RFC 8628).
type Pairing struct {
	DeviceCode       string `json:"deviceCode"`
	UserCode         string `json:"userCode"`
	VerificationPath string `json:"verificationPath"` // of the page, below the address of the service
	ExpiresIn        int64  `json:"expiresIn"`        // seconds, as Interval
	Interval         int64  `json:"interval"`
}

// BeginPairing requests a session that the person approves in a browser.
func (c *Client) BeginPairing(ctx context.Context, m Machine) (Pairing, error) {
	var a Pairing
	_, err := c.send(ctx, call{
		method: http.MethodPost, path: "/auth/login/device", body: map[string]any{"deviceInfo": m.Device}, member: "deviceCode",
	}, &a)
	return a, err
}

// LoginByPairing returns the session of a request that its person has approved. Before that it returns a
// fault with code authorization_pending, or slow_down.
func (c *Client) LoginByPairing(ctx context.Context, deviceCode string, m Machine) (SignedIn, error) {
	return c.signIn(ctx, "/auth/login/code", map[string]any{"deviceCode": deviceCode}, m)
}

// signIn makes a call of a login on a machine.
func (c *Client) signIn(ctx context.Context, path string, body map[string]any, m Machine) (SignedIn, error) {
	body["deviceInfo"] = m.Device
	in := call{method: http.MethodPost, path: path, body: body}
	if m.Token != "" {
		in.header = map[string]string{deviceTokenHeader: m.Token}
	}
	var a tokenAnswer
	header, err := c.send(ctx, in, &a)
	switch {
	case err != nil:
		return SignedIn{}, err
	case a.RequiresMFA:
		return SignedIn{MFAUser: a.UserID}, nil
	}
	t, err := a.sessionTokens()
	return SignedIn{Tokens: t, TrustLevel: a.TrustLevel, DeviceToken: header.Get(deviceTokenHeader), Email: a.Email}, err
}

// RefreshTokens exchanges a refresh token for new tokens. Using a refresh token twice ends all
// sessions of the person, so the caller must not repeat a call whose outcome is unknown.
func (c *Client) RefreshTokens(ctx context.Context, token string) (Tokens, error) {
	var a tokenAnswer
	_, err := c.send(ctx, call{
		method: http.MethodPost, path: "/auth/refresh", body: map[string]string{"refreshToken": token},
	}, &a)
	if err != nil {
		return Tokens{}, err
	}
	return a.sessionTokens()
}

// Session is a session as the API returns it to its owner (contract A-1). Times keep the format of
// the service.
type Session struct {
	ID             string `json:"id"`
	UserID         string `json:"userId"`
	TrustLevel     string `json:"trustLevel"`
	DeviceIdentity string `json:"deviceIdentity"`
	CreatedAt      string `json:"createdAt"`
	LastActivity   string `json:"lastActivity"`
	ExpiresAt      string `json:"expiresAt"`
	IPAddress      string `json:"ipAddress"`
}

// GetSession returns the session of an access token.
func (c *Client) GetSession(ctx context.Context, token string) (Session, error) {
	var s Session
	_, err := c.send(ctx, call{method: http.MethodGet, path: "/auth/session", token: token, member: "id"}, &s)
	return s, err
}

// Logout ends the session with an id.
func (c *Client) Logout(ctx context.Context, token, id string) error {
	_, err := c.send(ctx, call{
		method: http.MethodPost, path: "/auth/logout", token: token, body: map[string]string{"sessionId": id},
	}, nil)
	return err
}

// TrustDevice marks the device with an identity as trusted. It returns fault.NotFound if the
// service does not list the device.
func (c *Client) TrustDevice(ctx context.Context, token, identity string) error {
	var a struct {
		Devices []struct {
			ID       string `json:"id"`
			Identity string `json:"identity"`
			Revoked  bool   `json:"revoked"`
		} `json:"devices"`
	}
	if _, err := c.send(ctx, call{method: http.MethodGet, path: "/devices", token: token, member: "devices"},
		&a); err != nil {
		return err
	}
	for _, d := range a.Devices {
		if d.Identity == identity && !d.Revoked {
			_, err := c.send(ctx, call{
				method: http.MethodPut, path: "/devices/" + url.PathEscape(d.ID) + "/trust", token: token,
				body: map[string]string{"trustStatus": "TRUSTED"},
			}, nil)
			return err
		}
	}
	return fault.New(fault.NotFound, "the service does not list this device")
}

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
