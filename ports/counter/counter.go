// Package counter is the port to the counters of fixed windows. What is
// counted, and what becomes of a caller who is over a limit, is not its
// business.
package counter

import (
	"context"
	"time"
)

// MaxKey is the greatest length of a counter's key in bytes. Longer ones are
// hashed by whoever makes keys (decisions 3.2).
const MaxKey = 200

// Hit is one addition to one counter.
type Hit struct {
	// Key names the counter, its window included: 1 to MaxKey bytes, printable
	// ASCII without spaces, which every store takes.
	Key string
	// Addend is how many hits to add. 0 looks without counting, and makes no
	// counter; a negative one gives back hits counted before.
	Addend int64
	// Limit is the greatest count that is not over. Only AddUnlessOver acts on
	// it.
	Limit uint64
	// Window is the length of the counter's window.
	Window time.Duration
	// TTL is how long the store keeps a counter after it was made: the window,
	// and on top what differs between clocks, and jitter. At least one second.
	TTL time.Duration
	// Left is how long the window still lasts by the caller's clock; 0 where the
	// caller does not know. A store within the caller's process, which shares
	// its clock, may forget the counter when it has passed.
	Left time.Duration
}

// Store counts. It is safe for concurrent use from many processes: every
// addition is atomic, and each caller sees a count that includes its own
// addition. Two hits of one batch with the same key count one after the other.
// A store keeps neither hits nor after once a call has returned; callers use
// their memory again.
type Store interface {
	// Add adds each hit and writes the count after it to after, which has the
	// length of hits. A counter that is not there begins at zero; giving back
	// never makes a count negative. The order of the batch is the order of
	// counting.
	//
	// Errors: fault.Unavailable when the store does not answer within its
	// deadline or the context's; the counts are then unknown, and any part of
	// the batch may have been counted.
	Add(ctx context.Context, hits []Hit, after []uint64) error
	// AddUnlessOver is Add, except that if any hit would bring its counter over
	// its limit, only such hits are counted; for the others after is the count
	// as it stood (rule 10 of the rate limit document). The whole call is
	// atomic.
	AddUnlessOver(ctx context.Context, hits []Hit, after []uint64) error
	// Ping tells whether the store answers, within the context's deadline.
	Ping(ctx context.Context) error
}
