package recordsource

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/registry/mirror"
)

// ListRequest says what to read of another registry.
type ListRequest struct {
	URL mirror.URL
	// Since selects versions that were updated after it; zero for all versions.
	Since time.Time
	// Observe is called now and then with the number of records that were read so far; optional.
	Observe func(records int)
}

// Registries reads the lists of other registries for mirrors. What it returns is neither checked
// nor trusted. It is safe for concurrent use.
type Registries interface {
	// Read reads the whole list, deleted versions too, and returns it only when it was read to its
	// end. The caller must close it.
	//
	// It returns fault.Unavailable, with a sentence for operators that contains no secret, if the
	// registry cannot be reached, responds with an error, breaks off, takes too long, or lists too
	// much; fault.Unsupported if it does not accept Since; and the error of the context if it
	// ended.
	Read(ctx context.Context, r ListRequest) (List, error)
}

// List is what a registry listed. It is not safe for concurrent use.
type List interface {
	// Next returns the records of the next server. Each server comes once, ordered by the bytes of
	// their names; records without a readable name come first, with an empty name. After the last
	// it returns io.EOF.
	Next(ctx context.Context) (Server, error)
	// Rewind makes Next begin with the first server again.
	Rewind()
	// Records returns the number of records of all servers.
	Records() int
	// Close releases what the list occupies.
	Close() error
}

// Server has the records of one server. If there are more than MaxServerRecords, or their documents
// have more than MaxServerBytes, the others are replaced by one entry that is unreadable.
type Server struct {
	Name    string // unchecked
	Entries []Entry
}

// The bounds of the records of one server.
const (
	MaxServerRecords = 10_000
	MaxServerBytes   = 64 << 20
)
