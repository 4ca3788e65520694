// Package identity is the port through which the core uses OpenID Connect: it verifies ID tokens of
// CI jobs and workloads, and signs people in at the providers of companies. It does not decide what
// an identity may do.
//
// [github.com/tollgate-dev/tollgate/ports/identity/identitytest] has the contract tests.
package identity

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/registry/publisher"
)

// Token is a verified ID token.
type Token struct {
	publisher.Identity
	// ID is the same for the same token and differs for others of its issuer: jti, or a hash of the
	// token.
	ID        string
	ExpiresAt time.Time
}

// Verifier verifies ID tokens. It is safe for concurrent use.
type Verifier interface {
	// Verify returns the content of a token that an issuer of the method has signed for this
	// service, or for the audience if one is given, and that is valid now. The issuers of the method OIDC are configured; GitHubOIDC has
	// one issuer.
	//
	// It returns fault.Unauthenticated, with the reason, for a token that is malformed, of another
	// issuer, for another audience, not valid any more or not yet, or not signed by its issuer;
	// Issuer and Subject of the returned token are set if they could be read, for the audit log. It
	// returns fault.Unavailable when the keys of the issuer cannot be read, and fault.NotFound if
	// the service is not configured for the method.
	Verify(ctx context.Context, m publisher.Method, token string, audience ...string) (Token, error)
}
