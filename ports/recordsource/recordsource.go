// Package recordsource is the port to records that come from outside to be
// imported: files, folders and other registries. It says what a record brings
// along; it knows neither how they are written nor which may come in.
package recordsource

import (
	"context"
	"time"
)

// Entry is one record of a source, not checked against any rule.
type Entry struct {
	// Origin tells people where the record stands, such as
	// "export.json, record 12". It holds no secret.
	Origin string
	// Document is the server document as it was written. It is at most 1 MiB,
	// and the receiver's to keep.
	Document []byte
	// Recorded is what the other registry knew of it; the zero value when the
	// document stood alone.
	Recorded Recorded
	// Unreadable tells, when set, why there is no document: the record is no
	// JSON, too large, or records something that cannot be. The next record
	// may be good.
	Unreadable error
	// Broken tells, when set, why a part of the source ends here though it
	// should not: nothing more can be read from that file.
	Broken error
}

// Recorded is what another registry recorded of a version. Each field is empty
// where it recorded none.
type Recorded struct {
	Status          string
	StatusMessage   string
	StatusChangedAt time.Time
	PublishedAt     time.Time
	UpdatedAt       time.Time
}

// Source gives the records one after the other. It is used by one goroutine.
type Source interface {
	// Next returns the next record, or io.EOF behind the last. Any other error
	// means that the source is not to be had any more; the context's when that
	// ended.
	Next(ctx context.Context) (Entry, error)
}
