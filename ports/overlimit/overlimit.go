// Package overlimit is the port to what the process remembers of limits that
// are exceeded, so that it need not ask the counter store again (rate limit
// document, local cache). What is remembered is a hint: it may be lost at any
// time, and the store is then asked as ever.
package overlimit

import "time"

// Cache remembers counters that are over a limit until their window ends. It is
// safe for concurrent use, and Over is fast under parallel calls for one key.
type Cache interface {
	// Over tells whether the counter was noted as over this limit or a greater
	// one, and until later than now. A verdict says nothing of greater limits
	// than it was made with.
	Over(key string, limit uint32, now time.Time) bool
	// Note remembers that the counter is over the limit, until its window ends.
	// It takes the place of what was noted for the key before. The key is not
	// kept: callers use its memory again.
	Note(key string, limit uint32, until time.Time)
	// Forget drops what was noted for the key. A Note that runs beside it may
	// stay.
	Forget(key string)
}
