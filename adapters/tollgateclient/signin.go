package tollgateclient

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// deviceTokenHeader carries a device token both ways for clients without cookies (contract A-37).
const deviceTokenHeader = "X-Device-Token" // #nosec G101 -- the name of a header

// Device is how a machine describes itself (contract A-35).
type Device struct {
	UserAgent        string `json:"userAgent,omitempty"`
	ScreenResolution string `json:"screenResolution,omitempty"`
	Timezone         string `json:"timezone,omitempty"`
	Language         string `json:"language,omitempty"`
}

// Machine is a device and the proof that it is the one it says.
type Machine struct {
	Device Device
	Token  string // empty until a session on it has passed a step-up or a second factor
}

// Tokens are what a session is used with.
type Tokens struct {
	Access    string
	Refresh   string
	ExpiresIn time.Duration // of the access token
}

// SignedIn is the answer to a login: a session, or, where MFAUser is set, the question for a second factor.
type SignedIn struct {
	Tokens
	TrustLevel  string
	DeviceToken string // new; empty when the machine keeps what it has
	MFAUser     string
}

type tokenAnswer struct {
	AccessToken  string `json:"accessToken"`
	RefreshToken string `json:"refreshToken"`
	TrustLevel   string `json:"trustLevel"`
	ExpiresIn    int64  `json:"expiresIn"`
	RequiresMFA  bool   `json:"requiresMFA"`
	UserID       string `json:"userId"`
}

// errUnusable is a success without what it must hold.
func errNoTokens() error {
	return fault.New(fault.Internal, "", "the service answered without tokens: is the address right?")
}

func (a tokenAnswer) sessionTokens() (Tokens, error) {
	if a.AccessToken == "" || a.RefreshToken == "" {
		return Tokens{}, errNoTokens()
	}
	return Tokens{a.AccessToken, a.RefreshToken, time.Duration(a.ExpiresIn) * time.Second}, nil
}

// Login signs in with a password.
func (c *Client) Login(ctx context.Context, email, password string, m Machine) (SignedIn, error) {
	var a tokenAnswer
	_, err := c.send(ctx, call{
		method: http.MethodPost, path: "/auth/login", header: m.tokenHeader(),
		body: map[string]any{"email": email, "password": password, "deviceInfo": m.Device},
	}, &a)
	if err != nil {
		return SignedIn{}, err
	}
	if a.RequiresMFA {
		return SignedIn{MFAUser: a.UserID}, nil
	}
	t, err := a.sessionTokens()
	return SignedIn{Tokens: t, TrustLevel: a.TrustLevel}, err
}

// VerifyMFA answers the question for a second factor.
func (c *Client) VerifyMFA(ctx context.Context, user, code string, m Machine) (SignedIn, error) {
	var a tokenAnswer
	header, err := c.send(ctx, call{
		method: http.MethodPost, path: "/auth/mfa/verify", header: m.tokenHeader(),
		body: map[string]any{"userId": user, "mfaCode": code, "deviceInfo": m.Device},
	}, &a)
	if err != nil {
		return SignedIn{}, err
	}
	t, err := a.sessionTokens()
	return SignedIn{Tokens: t, TrustLevel: a.TrustLevel, DeviceToken: header.Get(deviceTokenHeader)}, err
}

func (m Machine) tokenHeader() map[string]string {
	if m.Token == "" {
		return nil
	}
	return map[string]string{deviceTokenHeader: m.Token}
}

// Refresh spends a refresh token. Whoever spends one twice ends all sessions of the person, so that a caller must
// not repeat a call of which it does not know how it ended.
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

// Session is a session as its bearer sees it (contract A-1). Times are as the service writes them.
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

// Session returns the session of an access token.
func (c *Client) GetSession(ctx context.Context, token string) (Session, error) {
	var s Session
	_, err := c.send(ctx, call{method: http.MethodGet, path: "/auth/session", token: token, member: "id"}, &s)
	return s, err
}

// Logout ends the session with the id.
func (c *Client) Logout(ctx context.Context, token, id string) error {
	_, err := c.send(ctx, call{
		method: http.MethodPost, path: "/auth/logout", token: token, body: map[string]string{"sessionId": id},
	}, nil)
	return err
}

// TrustDevice marks the device with the identity as trusted by its owner.
func (c *Client) TrustDevice(ctx context.Context, token, identity string) error {
	var a struct {
		Devices []struct {
			ID       string `json:"id"`
			Identity string `json:"identity"`
			Revoked  bool   `json:"revoked"`
		} `json:"devices"`
	}
	if _, err := c.send(ctx, call{method: http.MethodGet, path: "/devices", token: token, member: "devices"}, &a); err != nil {
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
	return fault.New(fault.NotFound, "", "the service does not list this device")
}
