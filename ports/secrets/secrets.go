// Package secrets is the port to everything that is hard to guess: password hashes, signed access
// tokens and random bytes. The rules that use them, for example which password is strong enough,
// are in core/auth.
//
// [github.com/tollgate-dev/tollgate/ports/secrets/secretstest] has the contract tests.
package secrets

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
)

// Entropy is a source of random bytes that are suitable for secrets. Code that only needs to spread
// work does not use it.
type Entropy interface {
	// Fill overwrites p with unpredictable bytes. It never fails and is safe for concurrent use.
	Fill(p []byte)
}

// Sealer encrypts secrets that must be read again, with a key of the deployment. It is safe for
// concurrent use.
type Sealer interface {
	// Seal returns a secret encrypted. Only Open with the same about returns it; about is not
	// secret.
	Seal(secret []byte, about string) ([]byte, error)
	// Open returns the secret that Seal encrypted, on any instance. It returns an error for another
	// about, for data that was changed, and for another key.
	Open(sealed []byte, about string) ([]byte, error)
}

// TokenClaims are the contents of an access token: of a session, of a publisher without one, or of a
// grant. Times are rounded down to seconds in the token.
type TokenClaims struct {
	ID        string // jti, unique
	UserID    auth.UserID
	SessionID auth.SessionID
	// Publisher is set in the token of a publisher, in which UserID and SessionID are empty.
	Publisher *auth.Publisher
	// Granted is set in the token of a grant, in which SessionID may be empty.
	Granted   *oauth.Claims
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

// PasswordHasher hashes and verifies passwords. It is safe for concurrent use. Hashing is expensive
// on purpose, so the number of calls that run and wait at once is bounded: above it every method
// returns fault.Unavailable with RetryAfter. A call that waits returns the context's error when the
// context ends (contract A-12).
type PasswordHasher interface {
	// Hash returns a hash with a new salt and the configured parameters. It returns fault.Invalid
	// for a password that is longer than any that can be set.
	Hash(ctx context.Context, p auth.Password) (auth.PasswordHash, error)
	// Verify reports whether h is a hash of p, and if so, whether it was made with weaker
	// parameters than the configured ones and should be replaced. A password that is too long never
	// matches and takes no less time. A call that does not match takes no less time than
	// VerifyNone, also when the hash has weaker parameters. A hash that cannot be decoded is
	// fault.Internal.
	Verify(ctx context.Context, h auth.PasswordHash, p auth.Password) (match, stale bool, err error)
	// VerifyNone takes as long as Verify of a hash with the configured parameters. Callers use it
	// for an account that does not exist.
	VerifyNone(ctx context.Context, p auth.Password) error
}

// NewUUID returns a new random identifier.
func NewUUID[ID ~string](s Entropy) ID {
	var random [16]byte
	s.Fill(random[:])
	return auth.NewUUID[ID](random)
}

// tokenID is the jti of an access token.
type tokenID string

// NewSessionClaims returns the claims of a new access token of a session. It expires after ttl, and
// with the session at the latest.
func NewSessionClaims(e Entropy, s *auth.Session, now time.Time, ttl time.Duration) TokenClaims {
	expires := now.Add(ttl)
	if expires.After(s.ExpiresAt) {
		expires = s.ExpiresAt
	}
	return TokenClaims{
		ID: string(NewUUID[tokenID](e)), UserID: s.UserID, SessionID: s.ID, IssuedAt: now, ExpiresAt: expires,
	}
}

// NewGrantClaims returns the claims of a new access token of a family, with what it says now. It expires
// after ttl.
func NewGrantClaims(e Entropy, f *oauth.Family, c oauth.Claims, now time.Time, ttl time.Duration) TokenClaims {
	var random [16]byte
	e.Fill(random[:])
	return TokenClaims{
		ID: oauth.TokenID(f.ID, random), UserID: f.UserID, SessionID: f.SessionID, Granted: &c,
		IssuedAt: now, ExpiresAt: now.Add(ttl),
	}
}

// NewSecret returns a new opaque token.
func NewSecret[S auth.RefreshSecret | auth.DeviceSecret | auth.CookieSecret | auth.LinkSecret | auth.ClientSecret](
	s Entropy,
) S {
	var random [32]byte
	s.Fill(random[:])
	return auth.NewSecret[S](random)
}

// IssueToken returns a token of a person or of a service account with a new id and secret, and the
// secret.
func IssueToken(s Entropy, t auth.APIToken) (auth.APIToken, auth.APISecret) {
	var random [32]byte
	s.Fill(random[:])
	t.ID = NewUUID[auth.APITokenID](s)
	return t.Issue(random)
}

// NewNonce returns a new nonce for encryption.
func NewNonce(s Entropy) auth.Nonce {
	var random auth.Nonce
	s.Fill(random[:])
	return random
}

// NewTOTPSecret returns a new secret for an authenticator.
func NewTOTPSecret(s Entropy) auth.TOTPSecret {
	var random auth.TOTPSecret
	s.Fill(random[:])
	return random
}

// NewRecoveryCodes returns the new recovery codes of an authenticator: auth.RecoveryCodes of them.
func NewRecoveryCodes(s Entropy) []auth.OTP {
	codes := make([]auth.OTP, auth.RecoveryCodes)
	for i := range codes {
		var random [7]byte
		s.Fill(random[:])
		codes[i] = auth.NewRecoveryCode(random)
	}
	return codes
}
