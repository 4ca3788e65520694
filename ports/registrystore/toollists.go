package registrystore

import (
	"context"

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
