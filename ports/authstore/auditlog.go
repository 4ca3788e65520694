package authstore

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
)

// AuditLog stores audit events. Each use case decides which events it writes.
type AuditLog interface {
	// Append stores all events or nothing. Inside a transaction they are stored with the
	// transaction.
	Append(ctx context.Context, events ...audit.Event) error
	// Search returns one page of the matching events, newest first and then by id, greatest first.
	// total is the number of all matching events, or 0 when q.Uncounted is set.
	Search(ctx context.Context, q AuditQuery) (events []audit.Event, total int, err error)
	// Page returns at most q.Limit of the matching events that follow one in the order of Search. The
	// zero place is before all events. It ignores Offset.
	Page(ctx context.Context, q AuditQuery, after AuditPlace) ([]audit.Event, error)
	// Follow returns at most q.Limit of the matching events that follow one in the order of the
	// stream, and the place of the last one, or after if there are no more. Events are only ever added
	// at the end of the stream: one whose transaction commits late, and what comes after it, is
	// returned by a later call. The zero place is before all events; one with an ID alone is looked
	// up, and Follow returns fault.NotFound if there is no event with this ID. It ignores Offset. The
	// caller is in no transaction.
	Follow(ctx context.Context, q AuditQuery, after AuditPlace) ([]audit.Event, AuditPlace, error)
	// CountHour counts the events of the oldest hour that was not counted before and that ended at
	// or before until, so that later searches for one person find their total faster. It reports
	// whether there was such an hour. The caller guarantees that no event with a time before until
	// is appended afterwards; totals would leave it out.
	CountHour(ctx context.Context, until time.Time) (counted bool, err error)
	// DeleteBefore deletes at most limit events from before t and returns how many it deleted.
	DeleteBefore(ctx context.Context, t time.Time, limit int) (int, error)
}

// AuditQuery selects audit events. A zero field does not restrict the selection.
type AuditQuery struct {
	ID       audit.EventID
	Subject  audit.Subject
	Actor    string // as events name it; one that begins with audit.PersonActor also in old events
	Server   string // the detail serverName
	Run      string // the detail partOf
	Whole    bool   // leaves out the parts of runs
	Category audit.Category
	Success  *bool     // nil selects both outcomes
	After    time.Time // exclusive
	Before   time.Time // exclusive
	Limit    int       // 1 to auth.MaxPage
	Offset   int       // 0 or more
	// Uncounted leaves out the count of all matching events.
	Uncounted bool
	// Most, if it is not 0, is where the count may end: at a total that is greater than it, and
	// greater than Offset + Limit.
	Most int
}

// AuditPlace is the place of an event in the order of Search, and in that of Follow.
type AuditPlace struct {
	Time     time.Time
	ID       audit.EventID
	Position int64 // of Follow, which returns it
}
