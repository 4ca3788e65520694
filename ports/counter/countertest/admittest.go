package countertest

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/test/await"
)

// noClock is why some cases are skipped. "keeps its bounds with many callers" tests the algorithms
// of such a store in real time, and its adapter tests them at times of the test.
const noClock = "the store has its own clock, which a test cannot move"

// year is the longest unit, in which a test ends within one window.
const year = 365 * 24 * time.Hour

// sliding and bucket are hits of the algorithms.
func sliding(key string, addend int64, limit uint64) counter.Hit {
	return counter.Hit{
		Key: key, Addend: addend, Limit: limit, Window: year, TTL: 2 * year, Algorithm: ratelimit.SlidingWindow,
	}
}

func bucket(key string, addend int64, burst uint64) counter.Hit {
	return counter.Hit{
		Key: key, Addend: addend, Limit: 1, Window: year, TTL: 20 * year, Algorithm: ratelimit.TokenBucket,
		Burst: burst,
	}
}

// each is one hit of each algorithm other than fixed windows, with the same bound.
func each(s Subject, name string, addend int64, bound uint64) map[string]counter.Hit {
	return map[string]counter.Hit{
		"sliding": sliding(s.Key(name+"-s"), addend, bound), "bucket": bucket(s.Key(name+"-b"), addend, bound),
	}
}

// admit decides about each hit by itself.
func admit(t *testing.T, s Subject, hits ...counter.Hit) []counter.Result {
	t.Helper()
	return countIn(t, s, counter.Each, hits...)
}

// admitAll decides about hits together.
func admitAll(t *testing.T, s Subject, hits ...counter.Hit) []counter.Result {
	t.Helper()
	return countIn(t, s, counter.AllOrNone, hits...)
}

// wantVerdicts compares verdicts with texts like "yes 3" and "no 0": whether the hits were
// admitted, and how many fit then.
func wantVerdicts(t *testing.T, what string, got []counter.Result, wanted ...string) {
	t.Helper()
	texts := make([]string, len(got))
	for i, g := range got {
		texts[i] = fmt.Sprintf("no %d", g.Verdict.Remaining)
		if g.Verdict.Admitted {
			texts[i] = fmt.Sprintf("yes %d", g.Verdict.Remaining)
		}
	}
	if fmt.Sprint(texts) != fmt.Sprint(wanted) {
		t.Errorf("%s: %v, want %v", what, texts, wanted)
	}
}

func with(h counter.Hit, addend int64) counter.Hit {
	h.Addend = addend
	return h
}

func admitsLimit(t *testing.T, s Subject) {
	for name, h := range each(s, "limit", 1, 3) {
		for _, want := range []string{"yes 2", "yes 1", "yes 0", "no 0", "no 0"} {
			wantVerdicts(t, name, admit(t, s, h), want)
		}
	}
}

func countsNoRefused(t *testing.T, s Subject) {
	for name, h := range each(s, "refused", 1, 10) {
		wantVerdicts(t, name, admit(t, s, with(h, 6)), "yes 4")
		wantVerdicts(t, name, admit(t, s, with(h, 5)), "no 4")
		wantVerdicts(t, name, admit(t, s, with(h, 4)), "yes 0")
	}
}

func admitLooks(t *testing.T, s Subject) {
	for name, h := range each(s, "look", 0, 4) {
		wantVerdicts(t, name, admit(t, s, h), "yes 4")
		if s.TTL != nil {
			if _, there := s.TTL(t, h.Key); there {
				t.Errorf("%s: looking made a counter", name)
			}
		}
		admit(t, s, with(h, 4))
		wantVerdicts(t, name, admit(t, s, h), "yes 0")
		wantVerdicts(t, name, admitAll(t, s, h), "yes 0")
	}
}

func admitGivesBack(t *testing.T, s Subject) {
	for name, h := range each(s, "back", 1, 5) {
		wantVerdicts(t, name, admit(t, s, with(h, -2)), "yes 5")
		wantVerdicts(t, name, admit(t, s, with(h, 5)), "yes 0")
		wantVerdicts(t, name, admit(t, s, with(h, -2)), "yes 2")
		wantVerdicts(t, name, admit(t, s, with(h, -100)), "yes 5")
	}
}

func admitsInOrder(t *testing.T, s Subject) {
	for name, h := range each(s, "in-order", 1, 3) {
		other := with(h, 1)
		other.Key = s.Key("in-order-other-" + name)
		got := admit(t, s, with(h, 2), other, with(h, 2), with(h, 1), with(h, 0), with(h, -1))
		wantVerdicts(t, name, got, "yes 1", "yes 2", "no 1", "yes 0", "yes 0", "yes 1")
	}
}

func refusesTooMany(t *testing.T, s Subject) {
	for name, h := range each(s, "many", 4, 3) {
		got := admit(t, s, h)
		wantVerdicts(t, name, got, "no 3")
		if got[0].Verdict.Reset != year {
			t.Errorf("%s: the reset is %v, want one unit", name, got[0].Verdict.Reset)
		}
	}
}

func admitsFixed(t *testing.T, s Subject) {
	fixed, key := hit(s.Key("fixed"), 2, 3), s.Key("fixed-s")
	for _, want := range []uint64{2, 4, 6} {
		got := admit(t, s, fixed, sliding(key, 1, 1))
		if got[0].Count != want || got[1].Verdict.Admitted != (want == 2) {
			t.Errorf("got %+v, want a count of %d", got, want)
		}
	}
	want(t, "by Add", count(t, s, with(fixed, 0)), 6)
}

func admitsAllOrNothing(t *testing.T, s Subject) {
	fixed, full, free := hit(s.Key("none-fixed"), 1, 2), sliding(s.Key("none-s"), 1, 1), bucket(s.Key("none-b"), 1, 5)
	got := admitAll(t, s, fixed, full, free)
	if got[0].Count != 1 {
		t.Errorf("the first time the fixed window has %d", got[0].Count)
	}
	wantVerdicts(t, "the first time", got[1:], "yes 0", "yes 4")
	got = admitAll(t, s, fixed, full, free)
	if got[0].Count != 1 {
		t.Errorf("with a refusal the fixed window has %d", got[0].Count)
	}
	wantVerdicts(t, "with a refusal", got[1:], "no 0", "yes 4")
	got = admitAll(t, s, with(fixed, 5), free)
	if got[0].Count != 6 {
		t.Errorf("over its limit the fixed window has %d", got[0].Count)
	}
	wantVerdicts(t, "with a fixed window over its limit", got[1:], "yes 4")
	wantVerdicts(t, "the same key twice", admitAll(t, s, with(free, 2), with(free, 3)), "yes 4", "no 4")
	wantVerdicts(t, "alone", admitAll(t, s, free), "yes 3")
}

func admitsInParallel(t *testing.T, s Subject) {
	const bound = 500
	for name, h := range each(s, "parallel", 1, bound) {
		var admitted atomic.Int64
		inParallel(func(int) {
			results := make([]counter.Result, 1)
			for range perWorker {
				if err := s.Store.Count(t.Context(), []counter.Hit{h}, results, counter.Each); err != nil {
					t.Errorf("Count: %v", err)
					return
				}
				if results[0].Verdict.Admitted {
					admitted.Add(1)
				}
			}
		})
		if admitted.Load() != bound {
			t.Errorf("%s: %d hits are admitted, want %d", name, admitted.Load(), bound)
		}
	}
}

func admitsAllInParallel(t *testing.T, s Subject) {
	const bound = 300
	a, b := sliding(s.Key("together-s"), 1, bound), bucket(s.Key("together-b"), 1, 2*bound)
	var admitted atomic.Int64
	inParallel(func(int) {
		results := make([]counter.Result, 2)
		for range perWorker {
			if err := s.Store.Count(t.Context(), []counter.Hit{a, b}, results, counter.AllOrNone); err != nil {
				t.Errorf("Count: %v", err)
				return
			}
			if results[0].Verdict.Admitted && results[1].Verdict.Admitted {
				admitted.Add(1)
			}
		}
	})
	left := admit(t, s, with(b, 0))[0].Verdict.Remaining
	if n := admitted.Load(); n > bound || !s.Loose && (n != bound || left != bound) {
		t.Errorf("%d calls are admitted, want %d; %d are left of the other, want %d", n, bound, left, bound)
	}
}

// admitsByTime requests as long as the rate needs for some hits: no more are admitted than the
// bound for the time that has passed.
func admitsByTime(t *testing.T, s Subject) {
	h := counter.Hit{
		Key: s.Key("time"), Addend: 1, Limit: 200, Window: time.Second, TTL: time.Minute,
		Algorithm: ratelimit.TokenBucket, Burst: 5,
	}
	began, admitted := time.Now(), 0
	for admitted < 50 {
		if admit(t, s, h)[0].Verdict.Admitted {
			admitted++
		}
		if s.Advance != nil {
			s.Advance(time.Millisecond)
			began = began.Add(-time.Millisecond)
		}
		if most := 5 + 200*time.Since(began).Seconds() + 1; float64(admitted) > most {
			t.Fatalf("%d hits are admitted in %v, want at most %.1f", admitted, time.Since(began), most)
		}
	}
}

// agreesWithDefinition compares a store whose clock the test moves with the algorithms themselves,
// whose own tests compare them with their definitions.
func agreesWithDefinition(t *testing.T, s Subject) {
	if s.Advance == nil {
		t.Skip(noClock)
	}
	run := 0
	rapid.Check(t, func(r *rapid.T) {
		run++
		limit, burst := rapid.Uint64Range(1, 20).Draw(r, "limit"), rapid.Uint64Range(1, 20).Draw(r, "burst")
		unit := rapid.SampledFrom([]time.Duration{time.Second, time.Minute, time.Hour}).Draw(r, "unit")
		a := counter.Hit{
			Key: s.Key(fmt.Sprint("model-s", run)), Limit: limit, Window: unit, TTL: 3 * unit,
			Algorithm: ratelimit.SlidingWindow,
		}
		b := counter.Hit{
			Key: s.Key(fmt.Sprint("model-b", run)), Limit: limit, Window: unit, TTL: time.Hour,
			Algorithm: ratelimit.TokenBucket, Burst: burst,
		}
		var st ratelimit.Sliding
		var full int64
		for range rapid.IntRange(1, 40).Draw(r, "calls") {
			s.Advance(time.Duration(rapid.Int64Range(0, int64(unit)).Draw(r, "step")))
			n := rapid.Int64Range(-1, 22).Draw(r, "hits")
			got := admit(t, s, with(a, n), with(b, n))
			var v, w ratelimit.Verdict
			st, v = ratelimit.SlidingLimit{Limit: limit, Window: unit}.Take(st, s.Now(), n)
			full, w = ratelimit.Bucket{Limit: limit, Window: unit, Burst: burst}.Take(full, s.Now(), n)
			if got[0].Verdict != v || got[1].Verdict != w {
				r.Fatalf("%d hits: %+v, want %+v and %+v", n, got, v, w)
			}
		}
	})
}

func keepsAlgorithmsApart(t *testing.T, s Subject) {
	a, b := s.Key("apart-s"), s.Key("apart-b")
	admit(t, s, sliding(a, 1, 1), bucket(b, 1, 1))
	wantVerdicts(t, "other keys", admit(t, s, sliding(s.Key("apart-s2"), 1, 1), bucket(s.Key("apart-b2"), 1, 1)),
		"yes 0", "yes 0")
}

func admitsGreatAddends(t *testing.T, s Subject) {
	const most = ratelimit.MaxHits
	h := sliding(s.Key("admit-great"), most, most)
	wantVerdicts(t, "all at once", admit(t, s, h), "yes 0")
	wantVerdicts(t, "one more", admit(t, s, with(h, 1)), "no 0")
	fast := counter.Hit{
		Key: s.Key("admit-great-b"), Addend: most, Limit: most, Window: time.Second, TTL: time.Minute,
		Algorithm: ratelimit.TokenBucket, Burst: most,
	}
	if got := admit(t, s, fast); !got[0].Verdict.Admitted {
		t.Errorf("a bucket of the greatest burst: %+v", got)
	}
}

func forgetsWindows(t *testing.T, s Subject) {
	if s.Advance == nil {
		t.Skip(noClock)
	}
	h := counter.Hit{
		Key: s.Key("forgets"), Addend: 5, Limit: 5, Window: time.Minute, TTL: 3 * time.Minute,
		Algorithm: ratelimit.SlidingWindow,
	}
	admit(t, s, h)
	s.Advance(2 * time.Minute)
	wantVerdicts(t, "two windows later", admit(t, s, h), "yes 0")
}

func keepsOverTurn(t *testing.T, s Subject) {
	if s.Advance == nil {
		t.Skip(noClock)
	}
	h := counter.Hit{
		Key: s.Key("turn"), Addend: 10, Limit: 10, Window: time.Minute, TTL: 3 * time.Minute,
		Algorithm: ratelimit.SlidingWindow,
	}
	s.Advance(time.Minute - time.Duration(s.Now().UnixNano()%int64(time.Minute)))
	admit(t, s, h)
	s.Advance(time.Minute)
	wantVerdicts(t, "as the window turns", admit(t, s, with(h, 1)), "no 0")
	s.Advance(30 * time.Second)
	wantVerdicts(t, "in the middle of the next", admit(t, s, with(h, 5)), "yes 0")
}

func fillsBucket(t *testing.T, s Subject) {
	if s.Advance == nil {
		fillsBucketInRealTime(t, s)
		return
	}
	h := counter.Hit{
		Key: s.Key("fills"), Addend: 4, Limit: 60, Window: time.Minute, TTL: time.Minute,
		Algorithm: ratelimit.TokenBucket, Burst: 4,
	}
	wantVerdicts(t, "at first", admit(t, s, h), "yes 0")
	s.Advance(2 * time.Second)
	wantVerdicts(t, "after two seconds", admit(t, s, with(h, 0)), "yes 2")
	s.Advance(time.Hour)
	wantVerdicts(t, "after an hour", admit(t, s, h), "yes 0")
}

// fillsBucketInRealTime requires that a bucket is full again, and not before it can be.
func fillsBucketInRealTime(t *testing.T, s Subject) {
	const burst, limit = 10, 100
	h := counter.Hit{
		Key: s.Key("fills"), Addend: burst, Limit: limit, Window: time.Second, TTL: time.Minute,
		Algorithm: ratelimit.TokenBucket, Burst: burst,
	}
	began := time.Now()
	wantVerdicts(t, "at first", admit(t, s, h), "yes 0")
	await.Until(t, "a full bucket", func() bool { return admit(t, s, with(h, 0))[0].Verdict.Remaining == burst })
	if passed := time.Since(began); passed < burst*time.Second/limit-time.Millisecond {
		t.Errorf("a bucket of %d hits at %d a second is full after %v", burst, limit, passed)
	}
	wantVerdicts(t, "when it is full", admit(t, s, h), "yes 0")
}

func keepsUsedBuckets(t *testing.T, s Subject) {
	if s.Advance == nil {
		t.Skip(noClock)
	}
	h := counter.Hit{
		Key: s.Key("used"), Addend: 1, Limit: 1, Window: time.Second, TTL: time.Minute,
		Algorithm: ratelimit.TokenBucket, Burst: 10,
	}
	admit(t, s, with(h, 10))
	for range 100 { // as many hits as fit, for a long time
		s.Advance(time.Second)
		wantVerdicts(t, "each second", admit(t, s, h), "yes 0")
	}
}

// emptiesChangedBucket requires that a bucket whose limit or burst is raised or lowered is empty at
// most, so that it fills as its new rate says, however long it would have taken before. Both modes
// do that.
func emptiesChangedBucket(t *testing.T, s Subject) {
	const step = 10 * time.Millisecond // of the raised rate
	for name, m := range map[string]counter.Mode{"each": counter.Each, "all-or-none": counter.AllOrNone} {
		other := with(hit(s.Key("changed-other-"+name), 0, noLimit), 0) // one hit is decided alike in both modes
		ask := func(h counter.Hit) ratelimit.Verdict {
			t.Helper()
			return countIn(t, s, m, h, other)[0].Verdict
		}
		slow := bucket(s.Key("changed-"+name), 60, 60) // one a year: its hits would be there for 60 years
		if v := ask(slow); !v.Admitted {
			t.Fatalf("%s: the first hits: %+v", name, v)
		}
		raised := slow
		raised.Addend, raised.Limit, raised.Burst = 1, uint64(slow.Window/step), 1_000_000
		v := ask(raised)
		if !v.Admitted && v.Reset > step {
			t.Errorf("%s: after the limit was raised the reset is %v", name, v.Reset)
		}
		await.Until(t, name+" admits a hit of the raised limit", func() bool {
			if v.Admitted {
				return true
			}
			if s.Advance != nil {
				s.Advance(v.Reset)
			}
			v = ask(raised)
			return v.Admitted
		})
		if v.Remaining >= raised.Burst-1 {
			t.Errorf("%s: the raised bucket was full at once: %+v", name, v)
		}
		many := slow
		many.Key, many.Addend, many.Burst = s.Key("lowered-"+name), 60, 60
		ask(many)
		many.Addend, many.Burst = 1, 2
		if v := ask(many); v.Admitted || v.Remaining != 0 || v.Reset > many.Window {
			t.Errorf("%s: after the burst was lowered from 60 to 2: %+v", name, v)
		}
	}
}
