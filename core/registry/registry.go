// Package registry is the model of the tool server registry: names, versions, documents with their
// rules, status, version order and grants. It does no I/O; the packages below it hold the use
// cases, which call the ports.
package registry

import "time"

// Release is what the registry records of a published version, besides its document. Times are UTC
// with microsecond precision.
type Release struct {
	Name            Name
	Version         Version
	Status          Status
	StatusMessage   string
	StatusChangedAt time.Time
	PublishedAt     time.Time // unique and rising among the versions of a server
	UpdatedAt       time.Time
	Latest          bool
	Origin          Origin // the zero value if it was published here
}

// Record is a release with its document, as it is stored and served.
type Record struct {
	Release
	Document []byte // compact JSON of the document as it was sent
}

// Edition is a release with the size of its document in bytes, for code that needs the size and not
// the document.
type Edition struct {
	Release
	Size int
}

// MaxVersions is the greatest number of versions of one server (contract R-25).
const MaxVersions = 10_000
