package oauth

import (
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// Request is an authorization request whose client, redirect URI and resource were found right. It is
// kept while the person signs in and decides (contract T-10).
type Request struct {
	ID      auth.TokenHash // of the id in the address of its pages
	Browser auth.TokenHash // of the cookie of the browser that made it

	Client      ClientID
	RedirectURI string
	Challenge   string // of PKCE, S256
	Resource    string // as the client wrote it
	State       string // empty without one
	Scopes      []string
	Level       auth.TrustLevel // the lowest of acr_values; 0 for any
	MaxAge      time.Duration   // since the person signed in; negative for any
	// Prompt is none, login, consent, or empty. LoginHint is the e-mail address that a form suggests.
	Prompt, LoginHint string

	CreatedAt, ExpiresAt time.Time
}

// RequestTTL is how long a person may take for a request.
const RequestTTL = 15 * time.Minute
