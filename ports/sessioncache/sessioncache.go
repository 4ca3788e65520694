// Package sessioncache is the port to short-lived copies of session records, which save a database
// read for each checked token. The database stays authoritative: a session that the cache does not
// have is read from ports/authstore.
package sessioncache

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// MaxAge is the maximum age of a copy, counted from its read from the database, on any instance. It
// limits how long an ended session can still be used (contract A-26: one second).
const MaxAge = 900 * time.Millisecond

// Cache keeps copies of sessions. All methods are safe for concurrent use. A cache that cannot be
// reached behaves like an empty one: the adapter reports its errors in its log and metrics, and
// they never fail a request.
type Cache interface {
	// Get returns the copy of a session, if the cache has one that is not older than MaxAge.
	Get(ctx context.Context, id auth.SessionID) (auth.Session, bool)
	// Put keeps a copy for at most MaxAge after read, the time just before the copy was read from
	// the database. It ignores a copy that was read before a Drop of the session.
	Put(ctx context.Context, s auth.Session, read time.Time)
	// Drop removes the copies of sessions: at once on this instance, and within MaxAge on all
	// others that share the cache. Call it after the change is committed.
	Drop(ctx context.Context, ids ...auth.SessionID)
}
