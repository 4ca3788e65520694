package authstore

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/history"
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

// HistoryCounts stores how often each value was seen at sign-ins: of each person, and of everybody.
// It keeps the sums of what is added to it; package history decides what to add, and decays what it
// reads. Values that contain an address or a prefix are stored as keyed hashes, by
// history.Value.Stored.
//
// The counts of a person are deleted together with the account. The counts of everybody stay; they
// do not contain who signed in.
type HistoryCounts interface {
	// Read returns the counts of the values, those of the person and those of everybody, with one
	// query that uses indexes. A value that was never added has no entry. The counts of everybody
	// lack additions that were not gathered yet.
	Read(ctx context.Context, user auth.UserID, person, everyone []history.Value) (history.Counts, error)
	// Add adds to the counts of the person and of everybody, with the meaning of
	// history.Count.Plus: weights are added, Last is the latest time, and Version is the one of
	// that time, or the greater one of two additions at the same time. Additions of parallel calls,
	// on all instances, are all counted, in any order. The counts of everybody must not make
	// sign-ins of different people wait for each other: they change when the additions are
	// gathered.
	Add(ctx context.Context, user auth.UserID, additions []history.Addition, at time.Time) error
	// DeleteExpired deletes the counts, of people and of everybody, that were last added to before
	// the given time, and returns how many it deleted.
	DeleteExpired(ctx context.Context, before time.Time) (int, error)
}

// HistoryDeferrals stores additions of sessions that are not trusted yet.
type HistoryDeferrals interface {
	// Defer stores additions of a stored session, at the time at which that began. It is called at
	// most once for a session. They are deleted together with the refresh tokens of the session,
	// that is when it cannot pass a step-up any more.
	Defer(ctx context.Context, session auth.Session, additions []history.Addition) error
	// Confirm applies the deferred additions of a session, as HistoryCounts.Add would have done
	// when they were deferred, and deletes them. Of parallel calls exactly one applies them. It
	// does nothing if there are none.
	Confirm(ctx context.Context, session auth.SessionID) error
}

// HistoryTotals gathers the counts of everybody.
type HistoryTotals interface {
	// Gather adds what was added for everybody since the last call to the counts of everybody, and
	// returns the number of sign-ins. Parallel calls, on all instances, count each sign-in once.
	Gather(ctx context.Context) (int, error)
	// Merge adds whole counts of one person, unless user is empty, and of everybody: sums are
	// added, Last is the latest time and Version is the one of that time. It is for recorded
	// sign-ins.
	Merge(ctx context.Context, user auth.UserID, counts history.Counts) error
}
