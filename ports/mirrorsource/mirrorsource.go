// Package mirrorsource is the port to the registries that mirrors read. What it returns is neither
// checked nor trusted.
package mirrorsource

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/registry/mirror"
	"github.com/tollgate-dev/tollgate/ports/recordsource"
)

// Request says what to read.
type Request struct {
	URL mirror.URL
	// Since selects versions that were updated after it; zero for all versions.
	Since time.Time
	// Observe is called now and then with the number of records that were read so far; optional.
	Observe func(records int)
}

// Source reads other registries. It is safe for concurrent use.
type Source interface {
	// Read reads the whole list, deleted versions too, and returns it only when it was read to its
	// end. The caller must close it.
	//
	// It returns fault.Unavailable, with a sentence for operators that contains no secret, if the
	// registry cannot be reached, responds with an error, breaks off, takes too long, or lists too
	// much; fault.Unsupported if it does not accept Since; and the error of the context if it ended.
	Read(ctx context.Context, r Request) (List, error)
}

// List is what a registry listed. It is not safe for concurrent use.
type List interface {
	// Next returns the records of the next server. Each server comes once, ordered by the bytes of
	// their names; records without a readable name come first, with an empty name. After the last it
	// returns io.EOF.
	Next(ctx context.Context) (Server, error)
	// Rewind makes Next begin with the first server again.
	Rewind()
	// Records returns the number of records of all servers.
	Records() int
	// Close releases what the list occupies.
	Close() error
}

// Server has the records of one server. If there are more than MaxRecords, or their documents have
// more than MaxBytes, the others are replaced by one entry that is unreadable.
type Server struct {
	Name    string // unchecked
	Entries []recordsource.Entry
}

// The bounds of the records of one server.
const (
	MaxRecords = 10_000
	MaxBytes   = 64 << 20
)
