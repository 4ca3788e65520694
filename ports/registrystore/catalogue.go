package registrystore

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/registry"
)

// Catalogue finds servers by what people write: words of their names, titles and descriptions. It
// has the latest version of each server.
type Catalogue interface {
	// Find returns a page of the servers that a search selects. It knows what Index has put into
	// its index.
	Find(ctx context.Context, s Search) (Finding, error)
	// Count returns how many of the servers that a search selects have each facet, without those of
	// registry.FacetCalled. It returns nil if that takes too long: if the catalogue has more than
	// MaxCounted servers, and the search may select many of them.
	Count(ctx context.Context, s Search) (map[registry.Facet]int, error)
	// Index puts some of the servers that changed since into the index, at most so many, and reports
	// whether there may be more. Several processes may call it at once.
	Index(ctx context.Context, most int) (more bool, err error)
	// Progress returns how much of the index is made.
	Progress(ctx context.Context) (Progress, error)
	// CountVersions returns the number of versions of all servers, deleted ones included, but no more
	// than most.
	CountVersions(ctx context.Context, most int) (int, error)
}

// Progress is how much of an index is made. The zero value is an index that lacks nothing.
type Progress struct {
	Waiting int // servers that Index has not come to since they were published or changed
	Servers int // all servers; may be 0 if none waits
}

// Done returns how many servers do not wait.
func (p Progress) Done() int { return max(0, p.Servers-p.Waiting) }

// Order is the order of the servers that a search finds.
type Order string

// The orders. With words, ByFit is: best match first (registry.MatchOf), then by name.
const (
	ByFit     Order = "fit"
	ByName    Order = "name"
	ByUpdated Order = "updated" // latest change first
	ByNewest  Order = "newest"  // latest publication first
)

const (
	// MaxFound is the number of servers up to which a search with words or facets is sorted and
	// counted as a whole. A search that finds more ends after that many, the best ones first.
	MaxFound = 500
	// MaxCounted is the number of servers up to which those of any other search are counted.
	MaxCounted = 10_000
)

// Search selects servers. Zero fields do not restrict the selection.
type Search struct {
	Words  []string         // in lower case; each is a part of the name, title or description
	Facets []registry.Facet // the server has all of them
	// Deleted includes servers whose latest version is deleted.
	Deleted bool
	// Names are the ranges of the names, and Except those that are left out; nil for none.
	Names, Except []registry.NameRange
	Order         Order
	Offset        int
	Limit         int // of the page, at least 1
}

// Finding is a page of the servers that a search selects.
type Finding struct {
	Servers []FoundServer
	Total   int  // of all pages, at most MaxFound or MaxCounted
	More    bool // more than Total match
	Own     int  // how many of the page come first because the reader may change them; no store sets it
}

// FoundServer is the latest version of a server, without its document.
type FoundServer struct {
	registry.Release
	registry.Summary

	// ApprovedBy has approved this version last (review.Review.DecidedBy), at ApprovedAt; empty without a review.
	ApprovedBy string
	ApprovedAt time.Time
}
