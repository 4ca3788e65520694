package registrystore

import (
	"context"
	"time"
)

// Changes reports that published versions, views or access rules changed, so that answers made from
// them can be kept. A change is a committed change of any of them, by this process or by another one.
type Changes interface {
	// Revision reads the revision of what Changes reports. Two equal revisions of one
	// database mean that no change was committed between the reads. It returns fault.Unavailable
	// when the database is not available.
	Revision(ctx context.Context) (Revision, error)
	// ValidFor returns how long a revision may be used without another read, if Hint does not
	// change. It is at most a second.
	ValidFor() time.Duration
	// AwayAfter returns how long to wait for a revision: a database that gives none in this time
	// counts as away. It is a second or more.
	AwayAfter() time.Duration
	// Hint returns a number that is another one after a change. It is another one at once after a
	// change by this process, and as a rule within milliseconds after a change by another process.
	// It does no I/O.
	Hint() uint64
	// Removals returns the names of the servers of which this process knows that a version was
	// deleted after the position, and the present position. complete is false if there may have
	// been others. It does no I/O.
	Removals(after uint64) (names []string, position uint64, complete bool)
}

// Revision identifies a state of the published versions, the views and the access rules. It has no order, because a
// database that took over from another one may have an older state.
type Revision struct {
	Changes  int64 // another number after each change of a version
	Removals int64 // another number after each change by which a version was deleted
	Views    int64 // another number after each change of a view or of its tokens
	Access   int64 // another number after each transaction that changed access rules
}
