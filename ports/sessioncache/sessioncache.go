// Package sessioncache is the port to a short-lived copy of session records
// that spares the database on every checked token. It is never the truth: what
// it does not hold is read from ports/authstore.
package sessioncache

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// MaxAge is how long after it was read from the records a copy may be served at most, on any
// instance, however long it took to reach Put. It bounds how long an ended session can still pass
// (contract A-26: one second).
const MaxAge = 900 * time.Millisecond

// Cache holds copies of sessions. All methods are safe for concurrent use. A
// cache that cannot be reached answers as an empty one: its errors are
// reported by the adapter's own log and statistics, and never fail a request.
type Cache interface {
	// Get returns the copy of a session, if there is one no older than MaxAge.
	Get(ctx context.Context, id auth.SessionID) (auth.Session, bool)
	// Put keeps a copy for at most MaxAge after read, a time at which its
	// reading from the records had not begun. One that was read before a Drop
	// that the cache knows of is outdated, and not kept.
	Put(ctx context.Context, s auth.Session, read time.Time)
	// Drop forgets sessions, on every instance that shares the cache within
	// MaxAge and on this one at once; it is for after the change is committed.
	Drop(ctx context.Context, ids ...auth.SessionID)
}
