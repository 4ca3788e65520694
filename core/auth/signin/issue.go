package signin

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/ports/secrets"
)

// tokenID is the jti of an access token.
type tokenID string

// issue gives a new session its first pair of tokens.
func (s *Service) issue(ctx context.Context, session *auth.Session, now time.Time) (Result, error) {
	secret := secrets.NewSecret[auth.RefreshSecret](s.ports.Entropy)
	if err := s.remember(ctx, session, secret, now); err != nil {
		return Result{}, err
	}
	return s.pair(ctx, session, secret, now)
}

// remember stores a generation of a session's refresh token.
func (s *Service) remember(ctx context.Context, session *auth.Session, secret auth.RefreshSecret, now time.Time) error {
	return s.ports.RefreshTokens.Add(ctx, auth.RefreshToken{
		Hash: auth.HashSecret(secret), SessionID: session.ID, IssuedAt: now, ExpiresAt: session.ExpiresAt,
	})
}

// pair signs an access token to go with a refresh token. It is good no longer than the session.
func (s *Service) pair(ctx context.Context, session *auth.Session, secret auth.RefreshSecret, now time.Time) (Result, error) {
	expires := now.Add(s.config.AccessTokenTTL)
	if expires.After(session.ExpiresAt) {
		expires = session.ExpiresAt
	}
	token, err := s.ports.Tokens.Sign(ctx, secrets.TokenClaims{
		ID:     string(secrets.NewUUID[tokenID](s.ports.Entropy)),
		UserID: session.UserID, SessionID: session.ID, IssuedAt: now, ExpiresAt: expires,
	})
	if err != nil {
		return Result{}, err
	}
	return Result{
		UserID: session.UserID, SessionID: session.ID, TrustLevel: session.TrustLevel,
		AccessToken: token, RefreshToken: secret, ExpiresIn: expires.Sub(now),
	}, nil
}
