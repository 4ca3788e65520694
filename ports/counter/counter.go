// Package counter is the port to the counters of rate limits, and to the cache of counters that
// are over their limit. It does not decide what is counted or what an exceeded limit means.
//
// [github.com/tollgate-dev/tollgate/ports/counter/countertest] has the contract tests.
package counter

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
)

// MaxKey is the maximum length of a counter's key in bytes. Callers hash longer ones (contract
// L-22).
const MaxKey = 200

// Hit is hits on one counter.
type Hit struct {
	// Key names the counter and its window: 1 to MaxKey bytes of printable ASCII without spaces,
	// which every store accepts.
	Key string
	// Addend is how many hits to add. 0 reads the counter and does not create it; a negative number
	// gives back hits that were counted before.
	Addend int64
	// Algorithm says what is counted: all hits of a fixed window, of the others only those that
	// fit.
	Algorithm ratelimit.Algorithm
	// Limit is the greatest count that is not over the limit. Of other algorithms than fixed
	// windows it is at least 1.
	Limit uint64
	// Burst is the number of hits that a token bucket lets in at once, at least 1.
	Burst uint64
	// Window is the length of the counter's window.
	Window time.Duration
	// TTL is how long the store keeps a counter after its creation: the window, plus an allowance
	// for clocks that differ, plus jitter. At least one second.
	TTL time.Duration
	// Left is the time until the window ends by the caller's clock, or 0 if unknown. A store in the
	// same process, which has the same clock, may delete the counter after it.
	Left time.Duration
}

// Result is what a store returns for a hit.
type Result struct {
	// Count is the count of a fixed window after the hit.
	Count uint64
	// Verdict is about a hit of another algorithm. A hit with an Addend of 0 is always admitted.
	Verdict ratelimit.Verdict
}

// IsOver reports whether the hit of a result was refused, or took its fixed window over the limit.
func (r *Result) IsOver(h *Hit) bool {
	if h.Algorithm == ratelimit.FixedWindow {
		return r.Count > h.Limit
	}
	return !r.Verdict.Admitted
}

// Mode says which hits of a call are counted.
type Mode uint8

// The modes.
const (
	// Each decides about each hit by itself.
	Each Mode = iota
	// AllOrNone counts all hits if no hit is refused or takes its fixed window over the limit.
	// Otherwise it counts only those fixed windows, and the other results are as if their hits had
	// an Addend of 0 (contract L-10). Hits of one key belong together.
	AllOrNone
)

// Add counts one hit of a fixed window in a store, and returns the count after it.
func Add(ctx context.Context, s Store, h Hit) (uint64, error) {
	results := make([]Result, 1)
	err := s.Count(ctx, []Hit{h}, results, Each)
	return results[0].Count, err
}

// AllFixed reports whether all hits are of fixed windows.
func AllFixed(hits []Hit) bool {
	for i := range hits {
		if hits[i].Algorithm != ratelimit.FixedWindow {
			return false
		}
	}
	return true
}

// operations are the names of calls with only fixed windows, and of others, by mode.
var operations = [...][2]string{Each: {"add", "admit"}, AllOrNone: {"add_unless_over", "admit_all"}}

// Operation returns the name of a call in metrics and traces.
func Operation(hits []Hit, m Mode) string {
	if AllFixed(hits) {
		return operations[m][0]
	}
	return operations[m][1]
}

// Operations returns the names of all operations.
func Operations() []string { return slices.Concat(operations[Each][:], operations[AllOrNone][:]) }

// Deadlines bounds the time of decisions that need several calls to a store, one after another or
// at the same time. A call that is alone is bounded by the store.
type Deadlines interface {
	// Bound returns a context for the calls of a decision, with the values of ctx. It ends when the
	// decision has lasted for the timeout of the store and a little more, or earlier with ctx if
	// the deadline of that is earlier. For a context that it has returned before, it returns the
	// same.
	Bound(ctx context.Context) context.Context
	// Timeout returns the timeout of the store.
	Timeout() time.Duration
}

// Chosen is the store that a deployment counts in.
type Chosen struct {
	Store
	System    string      // the name of a store that instances share, in traces; otherwise empty
	Healthy   func() bool // the health of the store (contract L-30)
	Deadlines Deadlines   // of decisions on a shared store; otherwise nil
}

// Store counts hits. It is safe for concurrent use from many processes. A store keeps neither hits
// nor results when a call has returned; callers reuse their memory.
type Store interface {
	// Count counts the hits in order and writes what came out to results, which has the length of
	// hits. Two hits of one key are counted one after the other.
	//
	// Of a fixed window all hits are counted: each is one atomic addition to the count, and the
	// result has the count after it. A missing counter starts at zero; giving hits back never makes
	// a count negative. Of the other algorithms only those hits are counted that fit. Each is
	// decided in one atomic step, by the clock of the store if it has one. A call in the mode
	// AllOrNone is one atomic step if the store can do that (contract L-42).
	//
	// It returns fault.Unavailable when the store does not answer within its deadline or the
	// context's. The results are then undefined, and any part of the batch may have been counted.
	Count(ctx context.Context, hits []Hit, results []Result, m Mode) error
	// Ping returns nil if the store answers within the context's deadline.
	Ping(ctx context.Context) error
}

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

// FindOver returns the keys whose hits, counted in order, would be refused or go over a limit
// (contract L-10); it is empty if there are none. look returns the result of the hit with an index
// as if it had this addend, and counts nothing. FindOver writes the results of refused hits to
// results.
func FindOver(hits []Hit, results []Result, look func(index int, addend int64) Result) map[string]bool {
	var over map[string]bool
	sums := make(map[string]int64, len(hits))
	for i := range hits {
		h := &hits[i]
		sum := sums[h.Key] + h.Addend
		if sum < 0 && h.Algorithm == ratelimit.FixedWindow { // a count is never negative
			sum = max(sum, -int64(look(i, 0).Count)) //nolint:gosec // counts fit
		}
		sums[h.Key] = sum
		r := look(i, sum)
		if !r.IsOver(h) {
			continue
		}
		if h.Algorithm != ratelimit.FixedWindow {
			results[i] = r
		}
		if over == nil {
			over = map[string]bool{}
		}
		over[h.Key] = true
	}
	return over
}

// AddTo returns count plus addend, at least zero and at most the greatest signed 64-bit number, the
// maximum in Valkey too.
func AddTo(count uint64, addend int64) uint64 {
	if addend >= 0 {
		return min(count+uint64(addend), math.MaxInt64)
	}
	return count - min(count, -uint64(addend))
}

// CountTogether counts positive hits of one key and fixed window as one hit, and writes the result
// of each, as if they had been counted in order.
func CountTogether(hits []Hit, results []Result, count func(h Hit) (uint64, error)) error {
	all := hits[0]
	for i := range hits[1:] {
		all.Addend = int64(AddTo(uint64(all.Addend), hits[1+i].Addend)) //nolint:gosec // at most the greatest one
	}
	after, err := count(all)
	for i := len(hits) - 1; i >= 0; i-- {
		results[i].Count = after
		after = AddTo(after, -hits[i].Addend)
	}
	return err
}
