// Package countertest has the contract tests of ports/counter. Every adapter of the port runs them.
// They test what the port promises, not how an adapter reaches its store.
package countertest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/counter"
)

// Subject is a store under test.
type Subject struct {
	Store counter.Store
	// Key returns a key that no other run of the suite has used. The names are short and printable.
	Key func(name string) string
	// Advance moves the store's clock. It is nil if the store has its own clock.
	Advance func(d time.Duration)
	// Now returns the time of the store's clock. It is nil if Advance is.
	Now func() time.Time
	// TTL returns the remaining lifetime of a counter, and false if the counter does not exist. It
	// is nil if the store does not show it.
	TTL func(t *testing.T, key string) (time.Duration, bool)
	// Loose is set for a store that cannot be atomic over several keys, for example a cluster. If a
	// concurrent call reaches the limit of one counter, the store may then count too many hits on
	// the others; it never admits too many.
	Loose bool
}

const (
	window    = time.Minute
	ttl       = window + 30*time.Second
	noLimit   = 1 << 40
	parallel  = 64
	perWorker = 50
)

// Run runs the suite. open returns a subject and registers its own cleanup; all of them may share
// one store.
func Run(t *testing.T, open func(t *testing.T) Subject) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, Subject){
		"a hit is added and the count returned":                      adds,
		"an empty batch adds nothing":                                addsNothing,
		"the hits of a batch are counted in order":                   countsInOrder,
		"a batch of 400 hits is counted":                             countsLongBatch,
		"a hit that adds nothing reads the count":                    looks,
		"hits are given back down to zero":                           givesBack,
		"two keys have two counts":                                   keepsApart,
		"parallel callers get each count once":                       countsInParallel,
		"a counter expires":                                          expires,
		"a later hit does not change when a counter expires":         keepsExpiry,
		"a counter stays until its window ends":                      keepsUntilEnd,
		"all or none: all hits are counted if none is over":          countsAll,
		"all or none: only the counter over its limit is counted":    countsOnlyOver,
		"all or none: all hits of a key that is over are counted":    countsRepeatedKey,
		"all or none: reading a full counter counts nothing else":    looksAtFull,
		"all or none: nothing is given back if another hit is over":  givesBackWithOver,
		"all or none: new counters expire":                           expiresUnlessOver,
		"all or none: parallel callers admit exactly the limit":      admitsExactly,
		"a cancelled context counts nothing":                         heedsCancel,
		"a ping is answered":                                         pings,
		"results of another length are an error":                     refusesLength,
		"keys of the maximum length are counted":                     countsLongKeys,
		"addends of the maximum size are counted":                    countsGreatAddends,
		"a count stops at the maximum":                               saturates,
		"windows and buckets admit up to the limit":                  admitsLimit,
		"a refused hit is not counted":                               countsNoRefused,
		"a hit of zero returns what fits and makes no counter":       admitLooks,
		"hits of windows and buckets are given back":                 admitGivesBack,
		"hits of windows and buckets are decided in order":           admitsInOrder,
		"more hits than the limit are refused for one unit":          refusesTooMany,
		"a batch may mix fixed windows with other algorithms":        admitsFixed,
		"all or none: a refusal keeps all other counts":              admitsAllOrNothing,
		"all or none: hits of a bucket are rounded together":         roundsTogether,
		"parallel callers are admitted exactly up to the limit":      admitsInParallel,
		"all or none: parallel callers never exceed a limit":         admitsAllInParallel,
		"a bucket admits by the time that passes":                    admitsByTime,
		"verdicts are those of the algorithms":                       agreesWithDefinition,
		"windows and buckets with other keys are independent":        keepsAlgorithmsApart,
		"windows and buckets admit the maximum addend":               admitsGreatAddends,
		"a sliding window is empty two windows later":                forgetsWindows,
		"a bucket fills at its rate":                                 fillsBucket,
		"a bucket in use is kept for longer than it takes to fill":   keepsUsedBuckets,
		"a bucket whose limit changed is at most empty":              emptiesChangedBucket,
		"hits of a sliding window count when the next window begins": keepsOverTurn,
		"bounds hold with many callers":                              keepsBounds,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

// Away tests a store that cannot be reached: every method reports fault.Unavailable before ctx of
// the test ends.
func Away(t *testing.T, store counter.Store) {
	t.Helper()
	fixed := []counter.Hit{hit("away", 1, noLimit), hit("away-2", 1, noLimit)}
	others := []counter.Hit{sliding("away", 1, 1), bucket("away-b", 1, 1)}
	for _, hits := range [][]counter.Hit{fixed[:1], fixed, others[:1], others} {
		for _, m := range []counter.Mode{counter.Each, counter.AllOrNone} {
			if err := store.Count(t.Context(), hits, make([]counter.Result, len(hits)), m); !fault.Is(err,
				fault.Unavailable) {
				t.Errorf("%s of %d hits: %v, want fault.Unavailable", counter.Operation(hits, m), len(hits), err)
			}
		}
	}
	if err := store.Ping(t.Context()); !fault.Is(err, fault.Unavailable) {
		t.Errorf("Ping: %v, want fault.Unavailable", err)
	}
}

func hit(key string, addend int64, limit uint64) counter.Hit {
	return counter.Hit{Key: key, Addend: addend, Limit: limit, Window: window, TTL: ttl}
}

// countIn counts hits in a mode, and returns the results.
func countIn(t *testing.T, s Subject, m counter.Mode, hits ...counter.Hit) []counter.Result {
	t.Helper()
	results := make([]counter.Result, len(hits))
	if err := s.Store.Count(t.Context(), hits, results, m); err != nil {
		t.Fatalf("Count %s: %v", counter.Operation(hits, m), err)
	}
	return results
}

// Counts returns the counts of results.
func Counts(results []counter.Result) []uint64 {
	counts := make([]uint64, len(results))
	for i := range results {
		counts[i] = results[i].Count
	}
	return counts
}

// count adds hits and returns the counts after them.
func count(t *testing.T, s Subject, hits ...counter.Hit) []uint64 {
	t.Helper()
	return Counts(countIn(t, s, counter.Each, hits...))
}

// countUnlessOver is count in the mode AllOrNone.
func countUnlessOver(t *testing.T, s Subject, hits ...counter.Hit) []uint64 {
	t.Helper()
	return Counts(countIn(t, s, counter.AllOrNone, hits...))
}

func want(t *testing.T, what string, got []uint64, wanted ...uint64) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(wanted) {
		t.Errorf("%s: counts %v, want %v", what, got, wanted)
	}
}

func adds(t *testing.T, s Subject) {
	key := s.Key("adds")
	want(t, "first hit", count(t, s, hit(key, 1, noLimit)), 1)
	want(t, "second hit", count(t, s, hit(key, 1, noLimit)), 2)
	want(t, "many hits at once", count(t, s, hit(key, 40, noLimit)), 42)
	want(t, "over the limit", count(t, s, hit(key, 1, 3)), 43)
}

func addsNothing(t *testing.T, s Subject) {
	want(t, "each", count(t, s))
	want(t, "all or none", countUnlessOver(t, s))
}

func countsInOrder(t *testing.T, s Subject) {
	a, b := s.Key("order-a"), s.Key("order-b")
	got := count(t, s, hit(a, 1, noLimit), hit(b, 10, noLimit), hit(a, 2, noLimit), hit(a, 0, noLimit),
		hit(a, -1, noLimit), hit(b, 0, noLimit))
	want(t, "batch", got, 1, 10, 3, 3, 2, 10)
	want(t, "stored", count(t, s, hit(a, 0, noLimit), hit(b, 0, noLimit)), 2, 10)
}

func countsLongBatch(t *testing.T, s Subject) {
	const size = 400
	hits := make([]counter.Hit, size)
	for i := range hits {
		hits[i] = hit(s.Key(fmt.Sprintf("long-%d", i/2)), int64(i+1), noLimit)
	}
	wanted := make([]uint64, size)
	for round := range uint64(2) {
		after := count(t, s, hits...)
		for i := 0; i < size; i += 2 {
			first, second := uint64(i+1), uint64(i+2)
			wanted[i] = round*(first+second) + first
			wanted[i+1] = wanted[i] + second
		}
		want(t, "long batch", after, wanted...)
	}
	after := countUnlessOver(t, s, hits...)
	for i := range wanted {
		wanted[i] += uint64(i/2)*4 + 3
	}
	want(t, "long batch unless over", after, wanted...)
}

func looks(t *testing.T, s Subject) {
	key := s.Key("looks")
	want(t, "a counter that is not there", count(t, s, hit(key, 0, noLimit)), 0)
	want(t, "the same, unless over", countUnlessOver(t, s, hit(key, 0, noLimit)), 0)
	if s.TTL != nil {
		if _, there := s.TTL(t, key); there {
			t.Error("looking made a counter")
		}
	}
	count(t, s, hit(key, 7, noLimit))
	want(t, "a counter that is there", count(t, s, hit(key, 0, noLimit)), 7)
	want(t, "and it stays", count(t, s, hit(key, 0, noLimit)), 7)
}

func givesBack(t *testing.T, s Subject) {
	key := s.Key("back")
	want(t, "nothing to give back", count(t, s, hit(key, -3, noLimit)), 0)
	if s.TTL != nil {
		if _, there := s.TTL(t, key); there {
			t.Error("giving back made a counter")
		}
	}
	count(t, s, hit(key, 5, noLimit))
	want(t, "a part", count(t, s, hit(key, -2, noLimit)), 3)
	want(t, "more than there is", count(t, s, hit(key, -9, noLimit)), 0)
	want(t, "counting on", count(t, s, hit(key, 1, noLimit)), 1)
}

func keepsApart(t *testing.T, s Subject) {
	a, b := s.Key("apart"), s.Key("apart2")
	count(t, s, hit(a, 3, noLimit))
	want(t, "another key", count(t, s, hit(b, 1, noLimit), hit(a, 0, noLimit)), 1, 3)
}

func countsInParallel(t *testing.T, s Subject) {
	key, other := s.Key("parallel"), s.Key("parallel-other")
	seen := make([]map[uint64]int, parallel)
	inParallel(func(worker int) {
		seen[worker] = make(map[uint64]int)
		results := make([]counter.Result, 2)
		for range perWorker {
			hits := []counter.Hit{hit(key, 1, noLimit), hit(other, 2, noLimit)}
			if err := s.Store.Count(t.Context(), hits, results, counter.Each); err != nil {
				t.Errorf("Count: %v", err)
				return
			}
			seen[worker][results[0].Count]++
		}
	})
	want(t, "sums", count(t, s, hit(key, 0, noLimit), hit(other, 0, noLimit)), parallel*perWorker, 2*parallel*perWorker)
	all := make(map[uint64]int)
	for _, counts := range seen {
		for value, times := range counts {
			all[value] += times
		}
	}
	for value := uint64(1); value <= parallel*perWorker; value++ {
		if all[value] != 1 {
			t.Fatalf("the count %d was answered %d times, want once", value, all[value])
		}
	}
}

func inParallel(work func(worker int)) {
	var all sync.WaitGroup
	for worker := range parallel {
		all.Go(func() { work(worker) })
	}
	all.Wait()
}

func expires(t *testing.T, s Subject) {
	key := s.Key("expires")
	want(t, "made", count(t, s, hit(key, 2, noLimit)), 2)
	if s.TTL != nil {
		wantTTL(t, s, key)
	}
	if s.Advance == nil {
		return
	}
	s.Advance(ttl - time.Nanosecond)
	want(t, "at its last moment", count(t, s, hit(key, 1, noLimit)), 3)
	s.Advance(time.Nanosecond)
	want(t, "looked at after it", count(t, s, hit(key, 0, noLimit)), 0)
	want(t, "made anew", count(t, s, hit(key, 1, noLimit)), 1)
	s.Advance(ttl - time.Nanosecond)
	want(t, "with an expiry of its own", count(t, s, hit(key, 1, noLimit)), 2)
}

// wantTTL allows for the time that passed since the counter was made.
func wantTTL(t *testing.T, s Subject, key string) {
	t.Helper()
	left, there := s.TTL(t, key)
	if !there || left <= 0 || left > ttl || left < ttl-window/2 {
		t.Errorf("counter %q lives on for %v (there: %t), want up to %v", key, left, there, ttl)
	}
}

func keepsExpiry(t *testing.T, s Subject) {
	key := s.Key("keeps")
	count(t, s, hit(key, 1, noLimit))
	longer := hit(key, 1, noLimit)
	longer.TTL = 24 * time.Hour
	want(t, "a longer life asked for later", count(t, s, longer), 2)
	want(t, "the same, unless over", countUnlessOver(t, s, longer), 3)
	want(t, "given back", count(t, s, hit(key, -1, noLimit)), 2)
	if s.TTL != nil {
		wantTTL(t, s, key)
	}
	if s.Advance != nil {
		s.Advance(ttl)
		want(t, "after the first life", count(t, s, hit(key, 0, noLimit)), 0)
	}
}

// keepsUntilEnd does not say what happens after the window: only a store in the caller's process
// can know its end.
func keepsUntilEnd(t *testing.T, s Subject) {
	key := s.Key("until-end")
	h := hit(key, 1, noLimit)
	h.Left = window / 3
	want(t, "made", count(t, s, h), 1)
	if s.TTL != nil {
		wantTTL(t, s, key)
	}
	if s.Advance == nil {
		return
	}
	s.Advance(window/3 - time.Nanosecond)
	want(t, "at the last moment of the window", count(t, s, h), 2)
}

func heedsCancel(t *testing.T, s Subject) {
	key, window := s.Key("cancelled"), sliding(s.Key("cancelled-s"), 1, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, hits := range [][]counter.Hit{
		{hit(key, 1, 1)}, {hit(key, 1, 1), hit(s.Key("cancelled-2"), 1, 1)}, {window}, {window, hit(key, 1, 1)},
	} {
		for _, m := range []counter.Mode{counter.Each, counter.AllOrNone} {
			if err := s.Store.Count(ctx, hits, make([]counter.Result, len(hits)), m); !fault.Is(err,
				fault.Unavailable) {
				t.Errorf("%s of %d hits with a cancelled context: %v, want fault.Unavailable",
					counter.Operation(hits, m), len(hits), err)
			}
		}
	}
	want(t, "stored", count(t, s, hit(key, 0, 1)), 0)
	wantVerdicts(t, "afterwards", countIn(t, s, counter.Each, with(window, 0)), "yes 1")
}

func pings(t *testing.T, s Subject) {
	if err := s.Store.Ping(t.Context()); err != nil {
		t.Errorf("Ping: %v", err)
	}
}

func refusesLength(t *testing.T, s Subject) {
	key, window := s.Key("length"), sliding(s.Key("length-s"), 1, 1)
	for _, hits := range [][]counter.Hit{{hit(key, 1, 9), hit(key, 1, 9)}, {window, window}} {
		for _, m := range []counter.Mode{counter.Each, counter.AllOrNone} {
			for _, room := range []int{0, 1, 3} {
				if err := s.Store.Count(t.Context(), hits, make([]counter.Result, room), m); !fault.Is(err,
					fault.Internal) {
					t.Errorf("%s of 2 hits with room for %d results: %v", counter.Operation(hits, m), room, err)
				}
			}
		}
	}
	want(t, "stored", count(t, s, hit(key, 0, 9)), 0)
}

func countsLongKeys(t *testing.T, s Subject) {
	short := s.Key("k")
	long := []byte(short)
	for len(long) < counter.MaxKey {
		long = append(long, byte('!'+len(long)%94))
	}
	want(t, "a long key", count(t, s, hit(string(long), 2, noLimit)), 2)
	long[len(long)-1]++
	want(t, "one that differs in the last byte", count(t, s, hit(string(long), 1, noLimit)), 1)
}

func countsGreatAddends(t *testing.T, s Subject) {
	const great = 1<<32 - 1 // the greatest addend of a descriptor (contract L-19)
	key := s.Key("great")
	want(t, "once", count(t, s, hit(key, great, great)), great)
	want(t, "twice", count(t, s, hit(key, great, great)), 2*great)
	want(t, "unless over", countUnlessOver(t, s, hit(key, great, 3*great), hit(key, 1, 3*great+1)), 3*great, 3*great+1)
}

func saturates(t *testing.T, s Subject) {
	const greatest = 1<<63 - 1
	key := s.Key("saturates")
	count(t, s, hit(key, greatest-1, noLimit))
	want(t, "beyond the greatest count", count(t, s, hit(key, greatest, noLimit)), greatest)
}
