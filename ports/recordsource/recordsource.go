// Package recordsource is the port to the records of an import: from files, folders and other
// registries. It defines what a record contains, not its file format and not which records are
// accepted.
package recordsource

import (
	"context"
	"time"
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
