package event

import (
	"hash/fnv"
	"strconv"
	"time"

	"github.com/tollgate-dev/tollgate/core/registry"
)

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
