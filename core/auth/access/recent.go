package access

import (
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/ports/sessioncache"
)

// maxRecent is the greatest number of values in one generation of Recent.
const maxRecent = 1 << 14

// Recent keeps values that were read from the database, each for at most sessioncache.MaxAge after
// its read. It has two generations, of which the old one is dropped as a whole. It is safe for
// concurrent use.
type Recent[K comparable, V any] struct {
	mu         sync.RWMutex
	young, old map[K]reading[V]
	since      time.Time // the beginning of the young generation
}

// reading is a value and the time just before it was read.
type reading[V any] struct {
	value V
	at    time.Time
}

// Get returns the value of a key, unless it is unknown or too old.
func (r *Recent[K, V]) Get(key K, now time.Time) (V, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	found, ok := r.young[key]
	if !ok {
		found = r.old[key]
	}
	age := now.Sub(found.at)
	return found.value, age >= 0 && age <= sessioncache.MaxAge
}

// Put keeps a value that was read at a time.
func (r *Recent[K, V]) Put(key K, value V, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if age := at.Sub(r.since); age < 0 || age > sessioncache.MaxAge || len(r.young) >= maxRecent {
		r.young, r.old, r.since = map[K]reading[V]{}, r.young, at
	}
	r.young[key] = reading[V]{value, at}
}
