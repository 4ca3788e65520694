package signin

import (
	"context"
	"encoding/base64"
	"net/netip"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/audit"
	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/secrets"
)

// Refresh exchanges a refresh token for a new pair and lets the session slide; it never changes the session's trust.
//
// A refresh token is good once. Presenting one again, of whatever generation, ends all sessions of
// the person: fault.Forbidden with code access_denied (contract A-25). Of two refreshes with one
// token at the same time one succeeds; the other cannot be told from a thief's and is a replay too,
// so the session that the first one renewed ends with the rest. Clients that cannot avoid such
// repeats need RefreshReuseGrace, within which a repeat gets the same successor, as long as that is
// unspent.
//
// fault.Unauthenticated with code invalid_token when the token is unknown or its session has ended, with code token_expired when
// the session has expired.
func (s *Service) Refresh(ctx context.Context, secret auth.RefreshSecret, from netip.Addr) (Result, error) {
	var x exchange
	err := s.ports.Transaction.Atomically(ctx, func(ctx context.Context) error {
		x = exchange{secret: secret, from: from, now: s.ports.Clock.Now()} // a retried transaction begins anew
		return s.exchange(ctx, &x)
	})
	if err != nil {
		return Result{}, err
	}
	if x.replayed {
		s.ports.Cache.Drop(ctx, x.ended...)
		s.ports.Notices.Tell(notices.Happening{
			Kind: notices.Replay, UserID: x.session.UserID, At: x.now, Address: from, DeviceID: x.session.DeviceID,
		})
		return Result{}, fault.New(fault.Forbidden, auth.CodeAccessDenied,
			"the refresh token was used before: all sessions were ended")
	}
	return x.result, nil
}

// exchange is one refresh under way.
type exchange struct {
	secret auth.RefreshSecret
	from   netip.Addr
	now    time.Time

	result   Result
	replayed bool
	session  auth.Session // whose token was replayed
	ended    []auth.SessionID
}

// exchange spends the token, or deals with one that is spent. What a replay does must be stored, so it is no error here.
func (s *Service) exchange(ctx context.Context, x *exchange) error {
	token, err := s.ports.RefreshTokens.Find(ctx, auth.HashSecret(x.secret))
	if fault.Is(err, fault.NotFound) {
		return errRefreshToken()
	}
	if err != nil {
		return err
	}
	err = s.ports.RefreshTokens.Spend(ctx, token.Hash, x.now)
	switch {
	case fault.Is(err, fault.Conflict):
		return s.repeated(ctx, x, token)
	case fault.Is(err, fault.NotFound):
		return errRefreshToken()
	case err != nil:
		return err
	}
	return s.rotate(ctx, x, token.SessionID)
}

// rotate lets the session slide and stores the next generation.
func (s *Service) rotate(ctx context.Context, x *exchange, id auth.SessionID) error {
	var session auth.Session
	err := s.ports.Sessions.Update(ctx, id, func(stored *auth.Session) error {
		if err := refreshable(stored, x.now); err != nil {
			return err
		}
		if most := x.now.Add(s.config.RefreshTokenMaxAge); stored.MaxExpiresAt.After(most) {
			stored.MaxExpiresAt = most // made by a clock that was ahead, or with another setting
		}
		stored.ExpiresAt = x.now.Add(s.config.RefreshTokenTTL)
		if stored.ExpiresAt.After(stored.MaxExpiresAt) {
			stored.ExpiresAt = stored.MaxExpiresAt
		}
		stored.LastActivity = x.now
		session = *stored
		return nil
	})
	if fault.Is(err, fault.NotFound) {
		return errRefreshToken()
	}
	if err != nil {
		return err
	}
	successor := s.successor(x.secret)
	if err := s.remember(ctx, &session, successor, x.now); err != nil {
		return err
	}
	x.result, err = s.pair(ctx, &session, successor, x.now)
	return err
}

// successor returns the token that follows another. With a grace it is derived from the earlier one with a secret key, so that a
// repeat can be given the same one although only hashes are stored; else it is random.
func (s *Service) successor(secret auth.RefreshSecret) auth.RefreshSecret {
	if s.config.RefreshReuseGrace == 0 {
		return secrets.NewSecret[auth.RefreshSecret](s.ports.Entropy)
	}
	sum := s.successorKey.Sum(string(secret))
	return auth.RefreshSecret(base64.RawURLEncoding.EncodeToString(sum[:]))
}

// repeated deals with a token that is spent: a repeat within the grace, or a replay.
func (s *Service) repeated(ctx context.Context, x *exchange, token auth.RefreshToken) error {
	session, err := s.ports.Sessions.Get(ctx, token.SessionID)
	if err != nil {
		return err
	}
	if err := refreshable(&session, x.now); err != nil {
		return err
	}
	if s.config.RefreshReuseGrace > 0 {
		if again, err := s.withinGrace(ctx, x, &session); again || err != nil {
			return err
		}
	}
	return s.replay(ctx, x, &session)
}

// withinGrace answers a repeat with the successor that the first refresh got, while that is fresh and unspent.
func (s *Service) withinGrace(ctx context.Context, x *exchange, session *auth.Session) (bool, error) {
	successor := s.successor(x.secret)
	next, err := s.ports.RefreshTokens.Find(ctx, auth.HashSecret(successor))
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if !next.SpentAt.IsZero() || next.SessionID != session.ID || x.now.Sub(next.IssuedAt) > s.config.RefreshReuseGrace {
		return false, nil
	}
	x.result, err = s.pair(ctx, session, successor, x.now)
	return true, err
}

// replay ends all sessions of the person.
func (s *Service) replay(ctx context.Context, x *exchange, session *auth.Session) error {
	ended, err := s.ports.Sessions.End(ctx, authstore.SessionFilter{UserID: session.UserID}, x.now, auth.EndReplay)
	if err != nil {
		return err
	}
	if len(ended) == 0 {
		return errRefreshToken() // another replay was faster
	}
	x.replayed, x.ended, x.session = true, ended, *session
	return s.ports.Trail.Record(ctx, audit.Entry{
		Type: auth.SuspiciousActivity, UserID: session.UserID, Details: map[string]any{
			"reason": "refresh_token_replay", "sessionId": string(session.ID), "sessionsInvalidated": len(ended),
			"deviceIdentity": string(session.DeviceIdentity), "ipAddress": address(x.from),
		},
	})
}

// refreshable tells whether a session may be renewed. It is asked before a spent token counts as a replay: an ended session has
// no tokens to steal.
func refreshable(session *auth.Session, now time.Time) error {
	switch {
	case !session.EndedAt.IsZero():
		return errRefreshToken()
	case !session.Active(now):
		return fault.New(fault.Unauthenticated, auth.CodeTokenExpired, "the refresh token has expired: sign in again")
	}
	return nil
}

func errRefreshToken() error {
	return fault.New(fault.Unauthenticated, auth.CodeInvalidToken, "the refresh token is not valid")
}
