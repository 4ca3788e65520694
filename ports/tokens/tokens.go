// Package tokens is the port to the signing and verifying of access tokens. It knows nothing of whether the session that a token
// names still lives.
//
// Answers to the port are checked by [github.com/tollgate-dev/tollgate/ports/tokens/tokenstest].
package tokens

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// Claims are what an access token says. Times have whole seconds in the token.
type Claims struct {
	ID        string // jti, unique
	UserID    auth.UserID
	SessionID auth.SessionID
	IssuedAt  time.Time
	ExpiresAt time.Time
}

// Signer signs access tokens. It is safe for concurrent use.
type Signer interface {
	// Sign returns a token with the claims.
	Sign(ctx context.Context, c Claims) (auth.AccessToken, error)
}

// Verifier verifies access tokens. It is safe for concurrent use.
type Verifier interface {
	// Verify returns the claims of a token that any instance of the deployment signed. A token that is expired is
	// fault.Unauthenticated with code token_expired, any other that is not good with code invalid_token.
	Verify(ctx context.Context, t auth.AccessToken) (Claims, error)
}
