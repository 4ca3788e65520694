package secrets

import (
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
)

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

// NewSecret returns a new opaque token.
func NewSecret[S auth.RefreshSecret | auth.DeviceSecret | auth.CookieSecret | auth.LinkSecret](s Entropy) S {
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
