// Package registry is the model of the tool server registry: names, versions,
// documents with their rules, status, version order and grants. It is pure;
// the use cases publish and browse, below it, talk to the ports.
package registry

import "time"

// Release is what the registry itself knows of one published version, beside
// its document. Times are UTC with microsecond precision.
type Release struct {
	Name            Name
	Version         Version
	Status          Status
	StatusMessage   string
	StatusChangedAt time.Time
	PublishedAt     time.Time // unique and rising among the versions of a server
	UpdatedAt       time.Time
	Latest          bool
}

// Record is a release with its document, as it is stored and served.
type Record struct {
	Release
	Document []byte // compact JSON of the document as it was sent
}

// Edition is a release with the size of its document in bytes, for what needs
// to know of a document without holding it.
type Edition struct {
	Release
	Size int
}

// MaxVersions is the most versions that one server may have (contract R-25).
const MaxVersions = 10_000
