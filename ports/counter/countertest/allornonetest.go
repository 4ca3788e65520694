package countertest

import (
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/ports/counter"
)

// This file has the cases of fixed windows in the mode AllOrNone.

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
	want(t, "the others of one key as they stood",
		countUnlessOver(t, s, hit(b, 1, 5), hit(b, 1, 5), hit(a, 1, 5)), 0, 0, 7)
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

// roundsTogether: two hits fit into a bucket whose burst they are, although the delay of each, a third of a second
// rounded up, is more than half of what the bucket holds: a look at both must not differ from what is counted.
// A loose store may give the first one back.
func roundsTogether(t *testing.T, s Subject) {
	h := counter.Hit{Key: s.Key("rounds"), Addend: 1, Limit: 3, Burst: 2, Window: time.Second, TTL: ttl, Algorithm: ratelimit.TokenBucket}
	results := countIn(t, s, counter.AllOrNone, h, h)
	h.Addend = 0
	left := countIn(t, s, counter.Each, h)[0].Verdict.Remaining
	both := results[0].Verdict.Admitted && results[1].Verdict.Admitted
	if !both && (!s.Loose || left != h.Burst) {
		t.Errorf("two hits of a burst of two: %+v, and %d are left", results, left)
	}
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
		results := make([]counter.Result, 2)
		for range perWorker {
			hits := []counter.Hit{hit(key, 1, limit), hit(other, 1, noLimit)}
			if err := s.Store.Count(t.Context(), hits, results, counter.AllOrNone); err != nil {
				t.Errorf("Count: %v", err)
				return
			}
			if results[0].Count <= limit {
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
