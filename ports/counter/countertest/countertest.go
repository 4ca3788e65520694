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
	// Now returns the time of the store's clock. It is nil if the store has its own clock.
	Now func() time.Time
	// TTL returns the remaining lifetime of a counter, and false if the counter does not exist. It
	// is nil if the store does not show it.
	TTL func(t *testing.T, key string) (time.Duration, bool)
	// Loose is set for a store that cannot be atomic over several keys, such as a cluster. If a
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
		"adds and returns the count":                 adds,
		"adds nothing for an empty batch":            addsNothing,
		"counts a batch in its order":                countsInOrder,
		"counts a long batch":                        countsLongBatch,
		"looks without counting":                     looks,
		"gives back down to zero":                    givesBack,
		"keeps counters apart":                       keepsApart,
		"counts exactly in parallel":                 countsInParallel,
		"expires a counter":                          expires,
		"keeps the expiry a counter was made with":   keepsExpiry,
		"keeps a counter until its window ends":      keepsUntilEnd,
		"counts all when nothing is over":            countsAll,
		"counts only what is over":                   countsOnlyOver,
		"counts all hits of a key that is over":      countsRepeatedKey,
		"takes a full counter that is looked at":     looksAtFull,
		"gives back with another hit over its limit": givesBackWithOver,
		"makes counters that expire, unless over":    expiresUnlessOver,
		"admits exactly the limit in parallel":       admitsExactly,
		"heeds a cancelled context":                  heedsCancel,
		"answers a ping":                             pings,
		"refuses a result of another length":         refusesLength,
		"counts keys of the greatest length":         countsLongKeys,
		"counts addends of the greatest size":        countsGreatAddends,
		"never counts further than it can remember":  saturates,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

// Away tests a store that cannot be reached: every method reports fault.Unavailable before ctx of
// the test ends.
func Away(t *testing.T, store counter.Store) {
	t.Helper()
	hits := []counter.Hit{hit("away", 1, noLimit)}
	after := make([]uint64, 1)
	admissions, results := []counter.Hit{sliding("away", 1, 1), bucket("away-b", 1, 1)}, make([]counter.Admitted, 2)
	for name, call := range map[string]func() error{
		"Add":           func() error { return store.Add(t.Context(), hits, after) },
		"AddUnlessOver": func() error { return store.AddUnlessOver(t.Context(), hits, after) },
		"Ping":          func() error { return store.Ping(t.Context()) },
		"Admit":         func() error { return store.Admit(t.Context(), admissions, results) },
		"AdmitAll":      func() error { return store.AdmitAll(t.Context(), admissions, results) },
	} {
		if err := call(); !fault.Is(err, fault.Unavailable) {
			t.Errorf("%s of a store that is away: %v, want fault.Unavailable", name, err)
		}
	}
}

func hit(key string, addend int64, limit uint64) counter.Hit {
	return counter.Hit{Key: key, Addend: addend, Limit: limit, Window: window, TTL: ttl}
}

// count adds hits and returns the counts after them.
func count(t *testing.T, s Subject, hits ...counter.Hit) []uint64 {
	t.Helper()
	after := make([]uint64, len(hits))
	if err := s.Store.Add(t.Context(), hits, after); err != nil {
		t.Fatalf("Add: %v", err)
	}
	return after
}

// countUnlessOver is count by AddUnlessOver.
func countUnlessOver(t *testing.T, s Subject, hits ...counter.Hit) []uint64 {
	t.Helper()
	after := make([]uint64, len(hits))
	if err := s.Store.AddUnlessOver(t.Context(), hits, after); err != nil {
		t.Fatalf("AddUnlessOver: %v", err)
	}
	return after
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
	want(t, "Add", count(t, s))
	want(t, "AddUnlessOver", countUnlessOver(t, s))
}

func countsInOrder(t *testing.T, s Subject) {
	a, b := s.Key("order-a"), s.Key("order-b")
	got := count(t, s, hit(a, 1, noLimit), hit(b, 10, noLimit), hit(a, 2, noLimit), hit(a, 0, noLimit), hit(a, -1, noLimit), hit(b, 0, noLimit))
	want(t, "batch", got, 1, 10, 3, 3, 2, 10)
	want(t, "stored", count(t, s, hit(a, 0, noLimit), hit(b, 0, noLimit)), 2, 10)
}

func countsLongBatch(t *testing.T, s Subject) {
	const size = 400
	hits, after := make([]counter.Hit, size), make([]uint64, size)
	for i := range hits {
		hits[i] = hit(s.Key(fmt.Sprintf("long-%d", i/2)), int64(i+1), noLimit)
	}
	wanted := make([]uint64, size)
	for round := range uint64(2) {
		if err := s.Store.Add(t.Context(), hits, after); err != nil {
			t.Fatalf("Add: %v", err)
		}
		for i := 0; i < size; i += 2 {
			first, second := uint64(i+1), uint64(i+2)
			wanted[i] = round*(first+second) + first
			wanted[i+1] = wanted[i] + second
		}
		want(t, "long batch", after, wanted...)
	}
	if err := s.Store.AddUnlessOver(t.Context(), hits, after); err != nil {
		t.Fatalf("AddUnlessOver: %v", err)
	}
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
		after := make([]uint64, 2)
		for range perWorker {
			if err := s.Store.Add(t.Context(), []counter.Hit{hit(key, 1, noLimit), hit(other, 2, noLimit)}, after); err != nil {
				t.Errorf("Add: %v", err)
				return
			}
			seen[worker][after[0]]++
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

func countsAll(t *testing.T, s Subject) {
	a, b := s.Key("all-a"), s.Key("all-b")
	want(t, "first", countUnlessOver(t, s, hit(a, 1, 2), hit(b, 5, 10)), 1, 5)
	want(t, "to the limits", countUnlessOver(t, s, hit(a, 1, 2), hit(b, 5, 10)), 2, 10)
}

func countsOnlyOver(t *testing.T, s Subject) {
	a, b, c := s.Key("over-a"), s.Key("over-b"), s.Key("over-c")
	countUnlessOver(t, s, hit(a, 2, 2), hit(b, 1, 10))
	want(t, "one over", countUnlessOver(t, s, hit(b, 1, 10), hit(a, 1, 2), hit(c, 1, 10)), 1, 3, 0)
	want(t, "stored", count(t, s, hit(a, 0, 2), hit(b, 0, 10), hit(c, 0, 10)), 3, 1, 0)
	if s.TTL != nil {
		if _, there := s.TTL(t, c); there {
			t.Error("a hit that was not counted made a counter")
		}
	}
	want(t, "a limit of zero", countUnlessOver(t, s, hit(c, 1, 0), hit(b, 1, 10)), 1, 1)
}

// countsRepeatedKey: hits of one key stand and fall together, so that what is answered never says
// "within the limit" for a counter that the batch brought over it.
func countsRepeatedKey(t *testing.T, s Subject) {
	a, b := s.Key("twice-a"), s.Key("twice-b")
	want(t, "within", countUnlessOver(t, s, hit(a, 1, 5), hit(a, 2, 5)), 1, 3)
	want(t, "over by the second", countUnlessOver(t, s, hit(a, 1, 5), hit(b, 1, 5), hit(a, 2, 5)), 4, 0, 6)
	want(t, "stored", count(t, s, hit(a, 0, 5), hit(b, 0, 5)), 6, 0)
	want(t, "the others of one key as they stood", countUnlessOver(t, s, hit(b, 1, 5), hit(b, 1, 5), hit(a, 1, 5)), 0, 0, 7)
}

func looksAtFull(t *testing.T, s Subject) {
	full, other := s.Key("full"), s.Key("full-other")
	count(t, s, hit(full, 3, 2))
	want(t, "looked at", countUnlessOver(t, s, hit(full, 0, 2), hit(other, 1, 9)), 3, 0)
}

func givesBackWithOver(t *testing.T, s Subject) {
	a, b := s.Key("give-a"), s.Key("give-b")
	count(t, s, hit(a, 4, 9), hit(b, 9, 9))
	want(t, "not given back with another hit over its limit", countUnlessOver(t, s, hit(a, -1, 9), hit(b, 1, 9)), 4, 10)
	want(t, "given back", countUnlessOver(t, s, hit(a, -1, 9), hit(b, -20, 9)), 3, 0)
	want(t, "nothing there", countUnlessOver(t, s, hit(s.Key("give-c"), -1, 9)), 0)
}

func expiresUnlessOver(t *testing.T, s Subject) {
	key, full := s.Key("unless"), s.Key("unless-full")
	countUnlessOver(t, s, hit(key, 1, 1))
	countUnlessOver(t, s, hit(full, 2, 1))
	if s.TTL != nil {
		wantTTL(t, s, key)
		wantTTL(t, s, full)
	}
	if s.Advance != nil {
		s.Advance(ttl)
		want(t, "after the life", countUnlessOver(t, s, hit(key, 1, 1), hit(full, 1, 1)), 1, 1)
	}
}

func admitsExactly(t *testing.T, s Subject) {
	const limit = 777
	key, other := s.Key("exact"), s.Key("exact-other")
	admitted := make([]int, parallel)
	inParallel(func(worker int) {
		after := make([]uint64, 2)
		for range perWorker {
			if err := s.Store.AddUnlessOver(t.Context(), []counter.Hit{hit(key, 1, limit), hit(other, 1, noLimit)}, after); err != nil {
				t.Errorf("AddUnlessOver: %v", err)
				return
			}
			if after[0] <= limit {
				admitted[worker]++
			}
		}
	})
	sum := 0
	for _, n := range admitted {
		sum += n
	}
	if sum != limit {
		t.Errorf("%d hits admitted, want %d", sum, limit)
	}
	stored := count(t, s, hit(key, 0, limit), hit(other, 0, noLimit))
	if s.Loose && stored[1] >= limit && stored[1] <= limit+parallel {
		stored[1] = limit
	}
	want(t, "stored", stored, parallel*perWorker, limit)
}

func heedsCancel(t *testing.T, s Subject) {
	key := s.Key("cancelled")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	after := make([]uint64, 1)
	if err := s.Store.Add(ctx, []counter.Hit{hit(key, 1, 1)}, after); !fault.Is(err, fault.Unavailable) {
		t.Errorf("Add with a cancelled context: %v, want fault.Unavailable", err)
	}
	if err := s.Store.AddUnlessOver(ctx, []counter.Hit{hit(key, 1, 1)}, after); !fault.Is(err, fault.Unavailable) {
		t.Errorf("AddUnlessOver with a cancelled context: %v, want fault.Unavailable", err)
	}
	want(t, "stored", count(t, s, hit(key, 0, 1)), 0)
}

func pings(t *testing.T, s Subject) {
	if err := s.Store.Ping(t.Context()); err != nil {
		t.Errorf("Ping: %v", err)
	}
}

func refusesLength(t *testing.T, s Subject) {
	key := s.Key("length")
	hits := []counter.Hit{hit(key, 1, 9), hit(key, 1, 9)}
	if err := s.Store.Add(t.Context(), hits, make([]uint64, 1)); err == nil {
		t.Error("Add took a result that is shorter than the batch")
	}
	if err := s.Store.AddUnlessOver(t.Context(), hits, make([]uint64, 1)); err == nil {
		t.Error("AddUnlessOver took a result that is shorter than the batch")
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
