package access

import (
	"time"

	"github.com/tollgate-dev/tollgate/core/recent"
	"github.com/tollgate-dev/tollgate/ports/sessioncache"
)

// maxRecent is the greatest number of values in one generation of Recent.
const maxRecent = 1 << 14

// Recent keeps values that were read from the database, each for at most sessioncache.MaxAge after
// its read. It is safe for concurrent use.
type Recent[K comparable, V any] struct{ kept recent.Memory[K, reading[V]] }

// reading is a value and the time just before it was read.
type reading[V any] struct {
	value V
	at    time.Time
}

// Get returns the value of a key, unless it is unknown or too old.
func (r *Recent[K, V]) Get(key K, now time.Time) (V, bool) {
	found, ok := r.kept.Get(key)
	age := now.Sub(found.at)
	return found.value, ok && age >= 0 && age <= sessioncache.MaxAge
}

// Put keeps a value that was read at a time.
func (r *Recent[K, V]) Put(key K, value V, at time.Time) {
	r.kept.Put(key, reading[V]{value, at}, 1, at, recent.Bounds{Size: maxRecent, Age: sessioncache.MaxAge})
}
