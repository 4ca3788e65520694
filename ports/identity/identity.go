// Package identity is the port through which the core uses OpenID Connect: it verifies ID tokens of
// CI jobs and workloads, and signs people in at the providers of companies. It does not decide what
// an identity may do.
//
// [github.com/tollgate-dev/tollgate/ports/identity/identitytest] has the contract tests.
package identity

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth/company"
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

// Client is the service as a client of a provider of company sign-in.
type Client struct {
	*company.Provider

	ClientSecret string // empty for a client that has PKCE alone
	Redirect     string // the address to which the provider sends people back
}

// Request is a request for a sign-in at a provider.
type Request struct {
	State, Nonce string
	Verifier     string            // of PKCE (RFC 7636)
	Extra        map[string]string // further parameters
}

// Tokens are what a provider gives after a sign-in.
type Tokens struct {
	Payload []byte // of the ID token, whose signature is verified and nothing else
	Refresh string // empty without a refresh token
	// More reads the document of the userinfo endpoint; nil without that endpoint. Its errors are
	// those of Exchange.
	More func(ctx context.Context) ([]byte, error)
}

// Step is a step of the test of a provider.
type Step struct {
	Name    string
	OK      bool
	Message string
	Field   string // of the provider, that mends it; may be empty
}

// AccessTokens verifies access tokens of the providers of company sign-in. It is safe for concurrent use.
type AccessTokens interface {
	// ReadAccess returns the payload of a token of which nothing is verified. It returns
	// fault.Unauthenticated, with the reason as its code, for one that is malformed, too long, or of
	// another type than an access token.
	ReadAccess(token string) (payload []byte, err error)
	// VerifyAccess returns fault.Unauthenticated, with the reason as its code, unless the provider has
	// signed a token of ReadAccess, and fault.Unavailable if the keys of the provider cannot be read.
	VerifyAccess(ctx context.Context, p *company.Provider, token string) error
}

// Assertions verifies assertions of identity (ID-JAG) of the providers of company sign-in. It is safe for
// concurrent use.
type Assertions interface {
	// ReadAssertion returns the payload of an assertion of which nothing is verified. It returns
	// fault.Unauthenticated, with the reason as its code, for one that is malformed, longer than 16 KiB, or
	// of another type than oauth-id-jag+jwt.
	ReadAssertion(token string) (payload []byte, err error)
	// VerifyAssertion returns fault.Unauthenticated, with the reason as its code, unless the provider has
	// signed an assertion of ReadAssertion, and fault.Unavailable if the keys of the provider cannot be read.
	VerifyAssertion(ctx context.Context, p *company.Provider, token string) error
}

// Providers talks to the providers of company sign-in. It is safe for concurrent use. All methods
// return fault.Unavailable if the provider does not answer in time, answers with a status of 429, or 500 or
// higher, cannot be read, or, with code company.CodeClient, if it refuses the client.
type Providers interface {
	// Authorize returns the address of the page at which a person signs in: code flow with PKCE.
	Authorize(ctx context.Context, c Client, r Request) (string, error)
	// CheckIssuer returns fault.Invalid if the parameter iss of an answer differs from the issuer,
	// or is empty although the provider announces it (RFC 9207).
	CheckIssuer(ctx context.Context, c Client, iss string) error
	// Exchange returns the tokens of a code. It returns fault.Invalid if the provider refuses, and
	// fault.Unauthenticated, with the reason as its code, for an ID token that is malformed, too
	// long, or not signed by the provider.
	Exchange(ctx context.Context, c Client, code, verifier string) (Tokens, error)
	// Refresh returns the tokens of a refresh token; Payload is nil if there is no ID token. It returns
	// fault.Unauthenticated with code invalid_grant if the provider refuses the refresh token, and
	// fault.Unavailable for any other refusal. The other errors are those of Exchange; with one of
	// them, Refresh of the returned tokens is set if the provider has replaced the refresh token.
	Refresh(ctx context.Context, c Client, refresh string) (Tokens, error)
	// VerifyLogout returns the payload of a logout token, whose type and signature are verified and
	// nothing else. The errors are those of Exchange for an ID token.
	VerifyLogout(ctx context.Context, p *company.Provider, token string) ([]byte, error)
	// Test reads the discovery document and the keys of a provider anew. It returns no error.
	Test(ctx context.Context, p *company.Provider) []Step
}
