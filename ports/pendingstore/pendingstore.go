// Package pendingstore is the port to the records of logins that wait for
// their second factor.
package pendingstore

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// Store keeps at most one pending login of a person and a device identity. All
// methods are safe for concurrent use, join a transaction that the context
// carries, and return fault.Unavailable when the database is away.
//
// Answers to the port are checked by
// [github.com/tollgate-dev/tollgate/ports/pendingstore/pendingstoretest].
type Store interface {
	// Put keeps a pending login in the place of the one of the same person
	// and device identity. It also removes those of the person that ended by
	// the time it was created, so that nobody's grow without bound.
	Put(ctx context.Context, p auth.PendingLogin) error
	// Find returns the pending login, expired or not, or fault.NotFound.
	Find(ctx context.Context, user auth.UserID, identity auth.DeviceIdentity) (auth.PendingLogin, error)
	// Take removes the pending login. Of parallel calls for one exactly one
	// succeeds, on all instances together; the others, and any later one, get
	// fault.NotFound.
	Take(ctx context.Context, user auth.UserID, identity auth.DeviceIdentity) error
	// RemoveAll removes all pending logins of a person.
	RemoveAll(ctx context.Context, user auth.UserID) error
	// DeleteExpired removes the pending logins that ended before the time; it
	// returns how many.
	DeleteExpired(ctx context.Context, before time.Time) (int, error)
}
