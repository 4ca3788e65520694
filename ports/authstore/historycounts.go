package authstore

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/history"
)

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
