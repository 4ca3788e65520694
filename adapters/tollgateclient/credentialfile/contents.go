package credentialfile

import (
	"slices"
	"time"
)

// Contents are what the file holds.
type Contents struct {
	Device       Device        `json:"device"`
	SignIn       *SignIn       `json:"signIn,omitempty"` // the last one; nil before the first
	DeviceTokens []DeviceToken `json:"deviceTokens,omitempty"`
}

// Device is how this machine introduces itself to every service. It never changes, so that a later login comes from
// the device that is known.
type Device struct {
	UserAgent string `json:"userAgent"`
}

// SignIn is where a person signed in, with the tokens of the session until that ends.
type SignIn struct {
	URL          string     `json:"url"`
	InsecureHTTP bool       `json:"insecureHttp,omitempty"`
	Email        string     `json:"email"`
	Tokens       *Tokens    `json:"tokens,omitempty"`
	Challenge    *Challenge `json:"challenge,omitempty"`
}

// Tokens are those of a session.
type Tokens struct {
	Access    string    `json:"access"`
	Refresh   string    `json:"refresh"`
	ExpiresAt time.Time `json:"expiresAt"` // of the access token, by the clock of this machine

	// Spending is set while the refresh token is on its way to the service. Where it is found set, nobody knows
	// whether the token is spent, and to spend one twice would end all sessions of the person.
	Spending bool `json:"spending,omitempty"`
}

// Challenge is a step-up that was begun and waits for its code.
type Challenge struct {
	ID     string `json:"id"`
	Method string `json:"method"`
}

// DeviceToken proves this machine to one service, for one person. It outlives sessions.
type DeviceToken struct {
	URL   string `json:"url"`
	Email string `json:"email"`
	Token string `json:"token"`
}

// DeviceToken returns the proof for a person at a service; empty when there is none.
func (c *Contents) DeviceToken(url, email string) string {
	if i := c.indexToken(url, email); i >= 0 {
		return c.DeviceTokens[i].Token
	}
	return ""
}

// KeepDeviceToken keeps the proof for a person at a service in the place of the one before.
func (c *Contents) KeepDeviceToken(d DeviceToken) {
	if i := c.indexToken(d.URL, d.Email); i >= 0 {
		c.DeviceTokens[i] = d
		return
	}
	c.DeviceTokens = append(c.DeviceTokens, d)
}

func (c *Contents) indexToken(url, email string) int {
	return slices.IndexFunc(c.DeviceTokens, func(d DeviceToken) bool { return d.URL == url && d.Email == email })
}
