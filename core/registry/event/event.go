// Package event has the rules of events (contract C-50 to C-57): which webhook wants which event,
// when a delivery is tried again and when it is given up, and how it is signed. It does no I/O.
package event

import (
	"hash/fnv"
	"strconv"
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
	Published        Type = "published"         // a version is listed
	Replaced         Type = "replaced"          // the document of a version that is listed is another one
	Status           Type = "status"            // a version, or all of a server, got a status; deletion too
	Approved         Type = "approved"          // a person or a rule approved a review
	Rejected         Type = "rejected"          // a person rejected a review
	ChangesRequested Type = "changes_requested" // a person requested changes of what was submitted
	Quarantined      Type = "quarantined"       // a version or a server was put in quarantine
	Released         Type = "released"          // a version or a server was released from quarantine
	Tools            Type = "tools_changed"     // a remote shows other tools than the approved ones
	Purge            Type = "purge"             // caches must drop the responses that have one of the keys
)

// Test is the type of the event with which an operator tests a webhook. It reports nothing, and is
// sent to that webhook only, whatever it wants.
const Test Type = "test"

// Types returns the types that a webhook may want.
func Types() []Type {
	return []Type{Published, Replaced, Status, Approved, Rejected, ChangesRequested, Quarantined, Released, Tools, Purge}
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

// PurgeAgain is how long after a change its responses are purged from caches once and for all. An
// instance that notices the change late answers with what was there before for a second at most,
// and a cache could keep that.
const PurgeAgain = 1500 * time.Millisecond

// Key is what a cache marks a response with, so that it can be purged: a word of ASCII letters,
// digits and hyphens.
type Key string

// The keys of the kinds of lists: pages of servers, and allow lists.
const (
	ServersKey    Key = "servers"
	AllowListsKey Key = "allowlists"
)

// ServerKey returns the key of the responses that are about one server. Two servers may have the
// same key; then both are purged. It has the 64-bit FNV-1a of the name.
func ServerKey(name string) Key {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(name)) // it never fails
	return Key("server-" + strconv.FormatUint(hash.Sum64(), 16))
}

// ViewKey returns the key of the responses that are read in a view.
func ViewKey(name string) Key { return Key("view-" + name) }

// Changes reports whether an event of the type changes what can be read, and so what caches have.
func (t Type) Changes() bool {
	switch t {
	case Published, Replaced, Status, Quarantined, Released:
		return true
	}
	return false
}

// Keys returns the keys to purge after a change of a server.
func Keys(name registry.Name) []Key {
	return []Key{ServerKey(name.String()), ServersKey, AllowListsKey}
}

// At returns the delivery with another time of its first attempt.
func (d Delivery) At(next time.Time) Delivery {
	d.NextAt = next
	return d
}
