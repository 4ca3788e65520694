package credentialfile

import (
	"slices"
	"time"
)

// Contents is the content of the file.
type Contents struct {
	Device       Device        `json:"device"`
	SignIn       *SignIn       `json:"signIn,omitempty"` // the last sign-in; nil before the first
	DeviceTokens []DeviceToken `json:"deviceTokens,omitempty"`
}

// Device identifies this machine to every service. It never changes, so that services recognise the
// device at a later login.
type Device struct {
	UserAgent string `json:"userAgent"`
}

// SignIn is a sign-in of a person at a service, with the tokens of the session until it ends.
type SignIn struct {
	URL          string     `json:"url"`
	InsecureHTTP bool       `json:"insecureHttp,omitempty"`
	CACert       string     `json:"caCert,omitempty"` // file with certificates that are trusted too
	Email        string     `json:"email"`
	Tokens       *Tokens    `json:"tokens,omitempty"`
	Challenge    *Challenge `json:"challenge,omitempty"`
}

// Tokens are the tokens of a session.
type Tokens struct {
	Access    string    `json:"access"`
	Refresh   string    `json:"refresh"`
	ExpiresAt time.Time `json:"expiresAt"` // of the access token, by the clock of this machine

	// Spending is set while a command uses the refresh token. If a command finds it set under the
	// lock, the service may have used the token, and using it twice would end all sessions of the
	// person.
	Spending bool `json:"spending,omitempty"`
}

// Challenge is a step-up that is waiting for its code.
type Challenge struct {
	ID     string `json:"id"`
	Method string `json:"method"`
}

// DeviceToken proves the identity of this machine to one service, for one person. It outlives
// sessions.
type DeviceToken struct {
	URL   string `json:"url"`
	Email string `json:"email"`
	Token string `json:"token"`
}

// DeviceToken returns the device token for a person at a service; otherwise empty.
func (c *Contents) DeviceToken(url, email string) string {
	if i := c.indexToken(url, email); i >= 0 {
		return c.DeviceTokens[i].Token
	}
	return ""
}

// KeepDeviceToken stores the device token for a person at a service. It replaces the previous one.
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
