package secrets

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// TokenClaims are the contents of an access token: of a session, or of a publisher without one.
// Times are rounded down to seconds in the token.
type TokenClaims struct {
	ID        string // jti, unique
	UserID    auth.UserID
	SessionID auth.SessionID
	// Publisher is set in the token of a publisher, in which UserID and SessionID are empty.
	Publisher *auth.Publisher
	IssuedAt  time.Time
	ExpiresAt time.Time
}

// TokenSigner signs access tokens. It is safe for concurrent use.
type TokenSigner interface {
	// Sign returns a token with the claims.
	Sign(ctx context.Context, c TokenClaims) (auth.AccessToken, error)
}

// TokenVerifier verifies access tokens. It does not check whether the session of a token is still
// active. It is safe for concurrent use.
type TokenVerifier interface {
	// Verify returns the claims of a token that any instance of the deployment signed. For an
	// expired token it returns fault.Unauthenticated with the code token_expired, for any other
	// invalid token fault.Unauthenticated with the code invalid_token.
	Verify(ctx context.Context, t auth.AccessToken) (TokenClaims, error)
}
