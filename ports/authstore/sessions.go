package authstore

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// Sessions stores sessions. Whether a session is still valid is decided in core/auth.
type Sessions interface {
	// Create stores a new session.
	Create(ctx context.Context, s auth.Session) error
	// Get returns a session, ended or not, or fault.NotFound.
	Get(ctx context.Context, id auth.SessionID) (auth.Session, error)
	// Update changes a session, or returns fault.NotFound.
	Update(ctx context.Context, id auth.SessionID, change func(*auth.Session) error) error
	// End ends the active sessions that the filter selects and returns their ids.
	End(ctx context.Context, which SessionFilter, at time.Time, reason auth.EndReason) ([]auth.SessionID, error)
	// Active returns one page of the user's sessions that are active at the given time, and the
	// total number of these sessions. The order is newest first; sessions of the same time are
	// ordered by id, greatest first. With a limit below 1 the page is empty.
	Active(
		ctx context.Context, user auth.UserID, at time.Time, page auth.PageRequest,
	) (sessions []auth.Session, total int, err error)
	// CountSince returns how many sessions of the user were created after t, ended ones included.
	CountSince(ctx context.Context, user auth.UserID, t time.Time) (int, error)
}

// SessionFilter selects sessions of a user. Zero fields other than UserID do not restrict the
// selection.
type SessionFilter struct {
	UserID   auth.UserID // required
	DeviceID auth.DeviceID
	Except   auth.SessionID // a session that is not selected
}

// SessionLevels lowers the trust level of sessions.
type SessionLevels interface {
	// Lower sets the trust level of the active sessions that the filter selects and whose level is
	// above the given one. It returns the ids of the sessions that it changed.
	Lower(ctx context.Context, which SessionFilter, to auth.TrustLevel, at time.Time) ([]auth.SessionID, error)
}

// SessionHistory returns the sessions from which the risk score learns a person's habits.
type SessionHistory interface {
	// Trusted returns at most limit sessions of the user whose level is, or was when they ended,
	// LIMITED_TRUST or higher, newest first (contract A-34).
	Trusted(ctx context.Context, user auth.UserID, limit int) ([]auth.Session, error)
}

// SessionRetention deletes sessions that are no longer needed.
type SessionRetention interface {
	// DeleteExpired deletes the sessions, ended or not, whose ExpiresAt is before the given time,
	// with their refresh tokens and challenges. It returns how many sessions it deleted.
	DeleteExpired(ctx context.Context, before time.Time) (int, error)
}

// RefreshTokens stores the hashes of refresh tokens, spent ones included.
type RefreshTokens interface {
	// Add stores a new, unspent token.
	Add(ctx context.Context, t auth.RefreshToken) error
	// Find returns the token with the hash, spent or not, or fault.NotFound.
	Find(ctx context.Context, hash auth.TokenHash) (auth.RefreshToken, error)
	// Spend marks an unspent token as spent at the given time. Of concurrent calls exactly one
	// succeeds; the others, and all later calls, return fault.Conflict. It returns fault.NotFound
	// for an unknown hash.
	Spend(ctx context.Context, hash auth.TokenHash, at time.Time) error
	// DeleteExpired deletes the tokens of sessions that have ended or expired by the given time,
	// and what is deferred for these sessions (HistoryDeferrals). It returns how many tokens it
	// deleted.
	DeleteExpired(ctx context.Context, before time.Time) (int, error)
}

// SessionCookies stores the hashes of session cookies: at most one for each session. A cookie is
// deleted together with its session.
type SessionCookies interface {
	// Add stores the cookie of a session. It returns fault.Conflict when the session has one.
	Add(ctx context.Context, c auth.SessionCookie) error
	// Find returns the cookie with the hash, or fault.NotFound.
	Find(ctx context.Context, hash auth.TokenHash) (auth.SessionCookie, error)
	// Replace stores a cookie in place of the one with the hash, of the same session. Of concurrent
	// calls with one hash exactly one succeeds; the others, and all later calls, return
	// fault.NotFound.
	Replace(ctx context.Context, hash auth.TokenHash, by auth.SessionCookie) error
}
