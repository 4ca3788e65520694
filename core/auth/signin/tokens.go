package signin

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/devices"
	"github.com/tollgate-dev/tollgate/ports/secrets"
)

// issueTokens stores the first refresh token of a new session and returns it with an access token.
// After a second factor it also confirms the device and returns a token of it.
func (s *Service) issueTokens(
	ctx context.Context, session *auth.Session, attempt *loginAttempt, now time.Time,
) (Result, error) {
	secret := secrets.NewSecret[auth.RefreshSecret](s.ports.Entropy)
	if err := s.saveRefreshToken(ctx, session, secret, now); err != nil {
		return Result{}, err
	}
	r, err := s.signTokens(ctx, session, secret, now)
	if err != nil || attempt.factor == "" {
		return r, err
	}
	r.DeviceToken, err = devices.Confirm(ctx, devices.Confirmation{
		Devices: s.ports.Devices, Tokens: s.ports.DeviceTokens, Entropy: s.ports.Entropy, Trail: s.ports.Trail,
	}, session, attempt.trustDevice, now)
	return r, err
}

// saveRefreshToken stores the hash of a refresh token of a session.
func (s *Service) saveRefreshToken(
	ctx context.Context, session *auth.Session, secret auth.RefreshSecret, now time.Time,
) error {
	return s.ports.RefreshTokens.Add(ctx, auth.RefreshToken{
		Hash: auth.HashSecret(secret), SessionID: session.ID, IssuedAt: now, ExpiresAt: session.ExpiresAt,
	})
}

// signTokens signs an access token and returns it together with the refresh token. The access token
// expires with the session at the latest.
func (s *Service) signTokens(
	ctx context.Context, session *auth.Session, secret auth.RefreshSecret, now time.Time,
) (Result, error) {
	claims := secrets.NewSessionClaims(s.ports.Entropy, session, now, s.config.AccessTokenTTL)
	token, err := s.ports.Tokens.Sign(ctx, claims)
	if err != nil {
		return Result{}, err
	}
	return Result{
		UserID: session.UserID, SessionID: session.ID, TrustLevel: session.TrustLevel,
		AccessToken: token, RefreshToken: secret, ExpiresIn: claims.ExpiresAt.Sub(now),
	}, nil
}
