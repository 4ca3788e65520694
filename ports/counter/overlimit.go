package counter

import (
	"time"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
)

// OverLimitCache keeps, in the process, which counters are over a limit, so that the counter store
// need not be called for them again (contract L-24). An entry is only a hint: it may be dropped at
// any time, and the store is called then. It is safe for concurrent use, and Over is fast under
// parallel calls for one key.
type OverLimitCache interface {
	// Over reports whether the counter was noted as over this limit, or one of which neither the
	// requests nor the burst are less, until a time after now, and how long until then. A note says
	// nothing about greater limits than its own.
	Over(key string, limit ratelimit.Limit, now time.Time) (left time.Duration, over bool)
	// Note records that the counter is over the limit until a time. It replaces an earlier note of
	// the key. The cache does not keep key; callers reuse its memory.
	Note(key string, limit ratelimit.Limit, until time.Time)
	// Forget deletes the note of the key. A note that is made at the same time may stay.
	Forget(key string)
}
