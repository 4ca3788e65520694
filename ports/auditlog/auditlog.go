// Package auditlog is the port to the audit log: append, search and retention.
// Which act leaves which event is decided where the act is.
package auditlog

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// Log keeps audit events. All methods are safe for concurrent use, join a
// transaction that the context carries, and return fault.Unavailable when the
// database is away.
type Log interface {
	// Append adds events. Inside a transaction they are stored with it or not
	// at all.
	Append(ctx context.Context, events ...auth.Event) error
	// Search returns the matching events, newest first (ties by id, greatest
	// first), and how many match in all, unless the query does not ask.
	Search(ctx context.Context, q Query) (events []auth.Event, total int, err error)
	// CountHour lets later searches of one person count faster: it counts the
	// events of the oldest hour that is not counted yet, and reports whether
	// there was one that ended at or before the time until. No event may be
	// appended with a time before until afterwards, or totals leave it out.
	CountHour(ctx context.Context, until time.Time) (counted bool, err error)
	// DeleteBefore removes the events before a time, at most limit of them,
	// and returns how many.
	DeleteBefore(ctx context.Context, t time.Time, limit int) (int, error)
}

// Query selects events. Zero fields do not narrow it.
type Query struct {
	UserID auth.UserID
	Type   auth.EventType
	After  time.Time // strictly after
	Before time.Time // strictly before
	Limit  int       // 1 to auth.MaxPage
	Offset int       // 0 and more
	// Uncounted spares the count of all matches: total is 0.
	Uncounted bool
}
