// Package event has the rules of events (contract C-50 to C-57): which webhook wants which event,
// when a delivery is tried again and when it is given up, and how it is signed. It does no I/O.
package event

import (
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
)

// ID identifies an event; it is a UUID in lower case.
type ID string

// Type is what an event reports.
type Type string

// The types that a webhook may want.
const (
	Published   Type = "published"   // a version is listed
	Replaced    Type = "replaced"    // the document of a version that is listed is another one
	Status      Type = "status"      // a version, or all of a server, got a status; deletion too
	Approved    Type = "approved"    // a person or a rule approved a review
	Rejected    Type = "rejected"    // a person rejected a review
	Quarantined Type = "quarantined" // a version or a server was put in quarantine
	Released    Type = "released"    // a version or a server was released from quarantine
	Purge       Type = "purge"       // caches must drop the responses that have one of the keys
)

// Test is the type of the event with which an operator tests a webhook. It reports nothing, and is
// sent to that webhook only, whatever it wants.
const Test Type = "test"

// Types returns the types that a webhook may want.
func Types() []Type {
	return []Type{Published, Replaced, Status, Approved, Rejected, Quarantined, Released, Purge}
}

// ParseType returns the type with the given name. It returns fault.Invalid for any other text.
func ParseType(s string) (Type, error) {
	return fault.OneOf("events", s, Types()...)
}

// Event is something that happened to a server.
type Event struct {
	ID      ID
	Type    Type
	Time    time.Time        // UTC with microseconds
	Name    registry.Name    // the zero name for Test
	Version registry.Version // the zero version for a whole server
	// Data is the answer of the API after the event, which is JSON; nil if the API answers without
	// a body.
	Data []byte
}
