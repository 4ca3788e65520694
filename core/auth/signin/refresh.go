package signin

import (
	"context"
	"encoding/base64"
	"net/netip"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// Refresh exchanges a refresh token for a new pair of tokens and extends the session. It never
// changes the trust level of the session.
//
// A refresh token is valid once. If a spent token of any generation is used again, all sessions of
// the person end, and the error is fault.Forbidden with code access_denied (contract A-25). This
// includes a client that sends one token twice at the same time: the first request succeeds, but
// the second cannot be distinguished from that of a thief, and ends the renewed session too.
// Clients that cannot avoid repeated requests need RefreshReuseGrace: during that time, a repeated
// request gets the same new token again, if that one is not spent yet.
//
// The error is fault.Unauthenticated with code invalid_token if the token is unknown or its session
// has ended, and with code token_expired if the session has expired.
func (s *Service) Refresh(ctx context.Context, secret auth.RefreshSecret, from netip.Addr) (Result, error) {
	x, err := transaction.Do(ctx, s.ports.Transaction, func(ctx context.Context) (refreshExchange, error) {
		x := refreshExchange{secret: secret, from: from, now: s.ports.Clock.Now()}
		err := s.exchangeToken(ctx, &x)
		return x, err
	})
	if err != nil {
		return Result{}, err
	}
	if x.replayed {
		s.ports.Cache.Drop(ctx, x.ended...)
		s.ports.Notices.Notify(notices.Event{
			Kind: notices.Replay, UserID: x.session.UserID, At: x.now, Address: from, DeviceID: x.session.DeviceID,
		})
		return Result{}, fault.New(fault.Forbidden, "the refresh token was used before: all sessions were ended").
			WithCode(auth.CodeAccessDenied)
	}
	return x.result, nil
}

// refreshExchange is the state of one refresh.
type refreshExchange struct {
	secret auth.RefreshSecret
	from   netip.Addr
	now    time.Time

	result   Result
	replayed bool
	session  auth.Session // the session of a replayed token
	ended    []auth.SessionID
}

// exchangeToken spends the token and issues its successor, or handles a token that is already
// spent. It returns no error for a replay, because the transaction that ends the sessions must be
// committed.
func (s *Service) exchangeToken(ctx context.Context, x *refreshExchange) error {
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
		return s.handleSpentToken(ctx, x, token)
	case fault.Is(err, fault.NotFound):
		return errRefreshToken()
	case err != nil:
		return err
	}
	return s.rotateToken(ctx, x, token.SessionID)
}

// rotateToken extends the session and stores the next refresh token.
func (s *Service) rotateToken(ctx context.Context, x *refreshExchange, id auth.SessionID) error {
	var session auth.Session
	err := s.ports.Sessions.Update(ctx, id, func(stored *auth.Session) error {
		if err := checkRefreshable(stored, x.now); err != nil {
			return err
		}
		stored.Renew(x.now, s.config.RefreshTokenTTL, s.config.RefreshTokenMaxAge)
		session = *stored
		return nil
	})
	if fault.Is(err, fault.NotFound) {
		return errRefreshToken()
	}
	if err != nil {
		return err
	}
	successor := s.successorToken(x.secret)
	if err := s.saveRefreshToken(ctx, &session, successor, x.now); err != nil {
		return err
	}
	x.result, err = s.signTokens(ctx, &session, successor, x.now)
	return err
}

// successorToken returns the token that replaces secret. With a grace period it is derived from
// secret with a key, so that a repeated
// request gets the same token although only hashes are stored.
// Otherwise it is random.
func (s *Service) successorToken(secret auth.RefreshSecret) auth.RefreshSecret {
	if s.config.RefreshReuseGrace == 0 {
		return secrets.NewSecret[auth.RefreshSecret](s.ports.Entropy)
	}
	sum := s.successorKey.Sum(string(secret))
	return auth.RefreshSecret(base64.RawURLEncoding.EncodeToString(sum[:]))
}

// handleSpentToken handles a token that is already spent: a repeat within the grace period, or a
// replay.
func (s *Service) handleSpentToken(ctx context.Context, x *refreshExchange, token auth.RefreshToken) error {
	session, err := s.ports.Sessions.Get(ctx, token.SessionID)
	if err != nil {
		return err
	}
	if err := checkRefreshable(&session, x.now); err != nil {
		return err
	}
	if s.config.RefreshReuseGrace > 0 {
		if again, err := s.repeatWithinGrace(ctx, x, &session); again || err != nil {
			return err
		}
	}
	return s.endReplayedSessions(ctx, x, &session)
}

// repeatWithinGrace reports whether the successor of the token is unspent and within the grace
// period. If so, it sets the result of the exchange to that successor.
func (s *Service) repeatWithinGrace(ctx context.Context, x *refreshExchange, session *auth.Session) (bool, error) {
	successor := s.successorToken(x.secret)
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
	x.result, err = s.signTokens(ctx, session, successor, x.now)
	return true, err
}

// endReplayedSessions ends all sessions of the person and records the replay.
func (s *Service) endReplayedSessions(ctx context.Context, x *refreshExchange, session *auth.Session) error {
	ended, err := s.ports.Sessions.End(ctx, authstore.SessionFilter{UserID: session.UserID}, x.now, auth.EndReplay)
	if err != nil {
		return err
	}
	if len(ended) == 0 {
		return errRefreshToken() // a simultaneous replay has ended them already
	}
	x.replayed, x.ended, x.session = true, ended, *session
	return s.ports.Trail.RecordChanges(ctx, newReplay(x.from, session, len(ended)))
}

// checkRefreshable returns an error if the session has ended or expired. It is called before a
// spent token counts as a replay, because the tokens of an ended session are worthless.
func checkRefreshable(session *auth.Session, now time.Time) error {
	switch {
	case !session.EndedAt.IsZero():
		return errRefreshToken()
	case !session.Active(now):
		return fault.New(fault.Unauthenticated, "the refresh token has expired: sign in again").
			WithCode(auth.CodeTokenExpired)
	}
	return nil
}

func errRefreshToken() error {
	return fault.New(fault.Unauthenticated, "the refresh token is not valid").WithCode(auth.CodeInvalidToken)
}
