// Package sessionstore is the port to the records of sessions and their
// refresh tokens. Whether a session still counts is for the core to say.
package sessionstore

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// Store keeps sessions. All methods are safe for concurrent use, join a
// transaction that the context carries, and return fault.Unavailable when the
// database is away.
type Store interface {
	// Create adds a session.
	Create(ctx context.Context, s auth.Session) error
	// Get returns a session, ended or not, or fault.NotFound.
	Get(ctx context.Context, id auth.SessionID) (auth.Session, error)
	// Update reads the session, lets change alter it and stores the result;
	// no other change of the same session comes between. When change fails,
	// nothing is stored and its error is returned. fault.NotFound when there
	// is none.
	Update(ctx context.Context, id auth.SessionID, change func(*auth.Session) error) error
	// End ends every living session that the filter names and returns the
	// ids of those it ended.
	End(ctx context.Context, which Filter, at time.Time, reason auth.EndReason) ([]auth.SessionID, error)
	// Active returns one page of the sessions of a user that live at the time,
	// newest first (ties by id, greatest first), and how many live in all. A
	// limit below 1 returns none.
	Active(ctx context.Context, user auth.UserID, at time.Time, page auth.PageRequest) (sessions []auth.Session, total int, err error)
	// CountSince returns how many sessions of the user were made after the
	// time, ended ones too.
	CountSince(ctx context.Context, user auth.UserID, t time.Time) (int, error)
}

// Filter names sessions to end or to lower. UserID is required; DeviceID narrows it to a
// device; Except leaves one session out.
type Filter struct {
	UserID   auth.UserID
	DeviceID auth.DeviceID
	Except   auth.SessionID
}

// Retention removes sessions that nothing asks for any more. Same promises as
// Store.
type Retention interface {
	// DeleteExpired removes the sessions that could be refreshed until before
	// the time at most, ended or not, with their refresh tokens and challenges;
	// it returns how many sessions.
	DeleteExpired(ctx context.Context, before time.Time) (int, error)
}

// RefreshTokens keeps the generations of refresh tokens. Same promises as
// Store.
type RefreshTokens interface {
	// Add stores a new unspent token.
	Add(ctx context.Context, t auth.RefreshToken) error
	// Find returns the token of a hash, spent or not, or fault.NotFound.
	Find(ctx context.Context, hash auth.TokenHash) (auth.RefreshToken, error)
	// Spend marks an unspent token spent at the time. Of parallel calls for
	// one token exactly one succeeds; the others, and any later one, get
	// fault.Conflict. An unknown one is fault.NotFound.
	Spend(ctx context.Context, hash auth.TokenHash, at time.Time) error
	// DeleteExpired removes the tokens of sessions that can no longer be
	// refreshed at the time; it returns how many.
	DeleteExpired(ctx context.Context, before time.Time) (int, error)
}
