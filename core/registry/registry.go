// Package registry is the model of the tool server registry: names, versions, documents with their
// rules, status, version order and grants. It does no I/O; the packages below it hold the use
// cases, which call the ports.
package registry

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/jsonvalue"
)

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

// AppliedState is the last state of a file that an owner has applied.
type AppliedState struct {
	Owner   string // as the objects that it manages name it
	ApplyID string // in the events of the changes
	By      string // the actor (audit.Actor); empty for a local operator command
	At      time.Time
	Objects []audit.Object // those that the owner has managed since, without secrets
}

// Check is a condition on a stored object. The use case that changes the object checks it in its
// transaction. current is nil if the object does not exist. The error ends the change.
type Check[T any] func(current *T) error

// Permit returns the error of the check; nil without one.
func (c Check[T]) Permit(current *T) error {
	if c == nil {
		return nil
	}
	return c(current)
}

// CheckByHand returns fault.Conflict for a change by hand of an object that a file manages, whose
// owner is manager; empty without one. The detail managedBy is the owner. otherwise ends the sentence
// with another way, or is empty.
func CheckByHand(manager, otherwise string) error {
	if manager == "" {
		return nil
	}
	return fault.Newf(fault.Conflict, "the file of %s manages this: change it there%s", manager, otherwise).
		WithDetail("managedBy", jsonvalue.Text(manager))
}

// FindIn returns the first object of a list that matches; otherwise nil.
func FindIn[T any](list []T, matches func(*T) bool) *T {
	for i := range list {
		if matches(&list[i]) {
			return &list[i]
		}
	}
	return nil
}

// IsText reports whether every store can hold and search a value: it is valid UTF-8 without NUL
// (contract O-11).
func IsText(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }
