package registrystore

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
)

// MaxWords is the greatest number of words in one call of ToolLists.Named.
const MaxWords = 2000

// ToolLists stores the tool lists of versions: for each part and source at most one that is approved,
// and one that is not. They go with their version. Those that wait with the review of a document
// (tools.Stored.Review) are apart, and go with its decision. Its methods join the transaction that the context
// carries; Put and Withdraw must be called in one that has locked the server (ServerWriter.Lock). A
// change is one of Changes. Times are kept in UTC with microseconds.
type ToolLists interface {
	// OfVersion returns the lists of a version, ordered by part and source, the approved one first.
	OfVersion(ctx context.Context, name registry.Name, version registry.Version) ([]tools.Stored, error)
	// Servers returns the names of the servers that have lists, in order.
	Servers(ctx context.Context) ([]registry.Name, error)
	// OfReview returns the lists that wait with a review, ordered by part and source.
	OfReview(ctx context.Context, id registry.ReviewID) ([]tools.Stored, error)
	// Named returns which of some words, at most MaxWords, are names of servers, other than one, whose latest
	// version is not deleted, or of tools of their approved lists. It may be some seconds old.
	Named(ctx context.Context, other registry.Name, words []string) (tools.Listed, error)
	// Put stores a list of a version that exists, in place of the one of the same part and source that
	// is approved as this one is, or is not; or one that waits with a review, in place of that of the
	// same part and source.
	Put(ctx context.Context, s tools.Stored) error
	// Withdraw deletes the list that is not approved of the version, part and source of s, or returns
	// fault.NotFound. It reads no other field of s.
	Withdraw(ctx context.Context, s tools.Stored) error
}

// ToolWatches stores which remotes are asked for their tools, and when. Its methods join the transaction
// that the context carries. A change of the problem of a watch is one of Changes.
type ToolWatches interface {
	// Refresh makes a watch, due now, of each remote without one that can be asked: of a version that is
	// listed, or in quarantine by tools.Service alone, and no longer than 1,000 bytes. It removes those
	// whose remote is gone, unless somebody has its lease, and makes those due whose next question is later
	// than an interval and MaxSkew from now, or a day and MaxSkew, if the remote is away or unstable.
	Refresh(ctx context.Context, now time.Time, interval time.Duration) error
	// Claim gives a holder the watch that is due for the longest time and of which no one else has the
	// lease, with its versions in order; false without one, or if c.Most leases are held. If
	// c names a remote, it gives that one, also if it is not due, or has no watch yet, and others have
	// leases. A holder whose time is later than the new one by more than MaxSkew has it no more.
	// Callers at once never get one watch.
	Claim(ctx context.Context, c WatchClaim) (tools.Watch, bool, error)
	// Save stores a watch, except for its versions, and ends the lease. It returns fault.Conflict, and
	// stores nothing, unless the holder has the lease.
	Save(ctx context.Context, w tools.Watch, holder string) error
	// Of returns the watches of a server by remote, without their versions.
	Of(ctx context.Context, name registry.Name) ([]tools.Watch, error)
	// CountChanged returns of how many versions a list waits that was asked for and differs from the
	// approved one.
	CountChanged(ctx context.Context) (int, error)
}

// WatchClaim says which watch a holder wants.
type WatchClaim struct {
	Lease

	Most   int           // leases that may be held at once
	Name   registry.Name // zero for any
	Remote registry.RemoteURL
}
