// Package counter is the port to the counters of fixed windows, and to the cache of counters that
// are over their limit. It does not decide what is counted or what an exceeded limit means.
//
// [github.com/tollgate-dev/tollgate/ports/counter/countertest] has the contract tests.
package counter

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
)

// MaxKey is the maximum length of a counter's key in bytes. Callers hash longer ones (contract
// L-22).
const MaxKey = 200

// Hit is one addition to one counter.
type Hit struct {
	// Key names the counter and its window: 1 to MaxKey bytes of printable ASCII without spaces,
	// which every store accepts.
	Key string
	// Addend is how many hits to add. 0 reads the counter and does not create it; a negative number
	// gives back hits that were counted before.
	Addend int64
	// Limit is the greatest count that is not over the limit. Add does not use it.
	Limit uint64
	// Algorithm and Burst are for Admitter only. Burst is the number of hits that a token bucket lets in
	// at once; at least 1, as Limit is then.
	Algorithm ratelimit.Algorithm
	Burst     uint64
	// Window is the length of the counter's window.
	Window time.Duration
	// TTL is how long the store keeps a counter after its creation: the window, plus an allowance
	// for clocks that differ, plus jitter. At least one second.
	TTL time.Duration
	// Left is the time until the window ends by the caller's clock, or 0 if unknown. A store in the
	// same process, which has the same clock, may delete the counter after it.
	Left time.Duration
}

// Deadlines bounds the time of decisions that need several calls to a store, one after another or at the
// same time. A call that is alone is bounded by the store.
type Deadlines interface {
	// Bound returns a context for the calls of a decision, with the values of ctx. It ends when the
	// decision has lasted for the timeout of the store and a little more, or earlier with ctx if the
	// deadline of that is earlier. For a context that it has returned before, it returns the same.
	Bound(ctx context.Context) context.Context
	// Timeout returns the timeout of the store.
	Timeout() time.Duration
}

// Store counts hits. It is safe for concurrent use from many processes: every addition is atomic,
// and each caller gets a count that includes its own addition. Two hits of one batch with the same
// key are counted one after the other. A store does not keep hits or after when a call has
// returned; callers reuse their memory.
type Store interface {
	// Add adds the hits in order and writes the count after each to after, which has the length of
	// hits. A missing counter starts at zero; giving hits back never makes a count negative.
	//
	// It returns fault.Unavailable when the store does not answer within its deadline or the
	// context's. The counts are then undefined, and any part of the batch may have been counted.
	Add(ctx context.Context, hits []Hit, after []uint64) error
	// AddUnlessOver is like Add, except that if any hit would take its counter over its limit, only
	// those hits are counted; for the others after is the count without the hit (contract L-10).
	// The whole call is atomic.
	AddUnlessOver(ctx context.Context, hits []Hit, after []uint64) error
	// Ping returns nil if the store answers within the context's deadline.
	Ping(ctx context.Context) error

	Admitter
}
