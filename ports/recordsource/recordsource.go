// Package recordsource is the port to the records of an import: from files, folders and other
// registries. It defines what a record contains, not its file format and not which records are
// accepted.
package recordsource

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/mirror"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
)

// Entry is one record of a source, not checked against any rule.
type Entry struct {
	// Origin says where the record is, for example "export.json, record 12", for messages to
	// people. It contains no secret.
	Origin string
	// Document is the unchanged server document, at most 1 MiB. The receiver may keep it.
	Document []byte
	// Recorded is what the other registry recorded of the version; the zero value if the source has
	// only the document.
	Recorded Recorded
	// Unreadable, if set, is the reason why there is no document: the record is not JSON, is too
	// large, or has an impossible value. The next record may be valid.
	Unreadable error
	// Broken, if set, is the reason why a file ends here unexpectedly: the rest of it cannot be
	// read.
	Broken error
}

// Recorded is what another registry recorded of a version. All fields are optional.
type Recorded struct {
	Status          string
	StatusMessage   string
	StatusChangedAt time.Time
	PublishedAt     time.Time
	UpdatedAt       time.Time
	// Quarantine is set if the version was in quarantine there; only exports say so.
	Quarantine *Quarantine
	Tools      []ToolList // only exports in files have them
	// Owner and Contact are those of the server; only exports in files have them.
	Owner, Contact string
}

// Exported is a version in an export.
type Exported struct {
	registry.Record

	Held  registry.Held
	Tools []tools.Shown // its tool lists, in the order of its document
	Owner registry.Owner
}

// ToolList is a tool list of a version. Its fields are not checked.
type ToolList struct {
	Remote, Source, State, By string
	Package                   int
	At                        time.Time
	Content                   []byte
}

// Quarantine is the quarantine of a version.
type Quarantine struct {
	Entries []QuarantineEntry
	// Status, StatusMessage and StatusChangedAt are those that the version gets when it is
	// released.
	Status          string
	StatusMessage   string
	StatusChangedAt time.Time
}

// QuarantineEntry is an entry of a version, or of its server.
type QuarantineEntry struct {
	Server bool // the entry is for the whole server
	Reason string
	Since  time.Time
	By     string // a user id there; empty for an operator
}

// Source returns the records one after the other. It is not safe for concurrent use.
type Source interface {
	// Next returns the next record, or io.EOF after the last. After any other error the source
	// cannot be used any more; it is the context's error if the context ended.
	Next(ctx context.Context) (Entry, error)
}

// DocumentRequest says which document to read.
type DocumentRequest struct {
	Address string // absolute, http or https
	Chosen  bool   // an operator chose the host, so that it may be in a private network
}

// Documents reads single documents. What it returns is neither checked nor trusted. It is safe for
// concurrent use.
type Documents interface {
	// Read returns the server document at an address, which may be wrapped as registries return it;
	// at most 1 MiB. Unless an operator chose the address it is read from public addresses only,
	// and redirects lead to public addresses only.
	//
	// It returns fault.Unavailable, with a sentence for people that contains no secret, if there is
	// no document, it is too large or takes too long; and the error of the context if it ended.
	Read(ctx context.Context, r DocumentRequest) ([]byte, error)
}

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
