package decide_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/adapters/memory"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/decide"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/test/must"
)

// countingStore counts the calls of a store, and fails on demand.
type countingStore struct {
	counter.Store
	calls int
	fails bool
}

func (s *countingStore) Count(ctx context.Context, hits []counter.Hit, results []counter.Result, m counter.Mode) error {
	s.calls++
	if s.fails {
		return errAway
	}
	return s.Store.Count(ctx, hits, results, m)
}

// cachedFixture is a fixture whose Decider has a cache of counters over their limits.
type cachedFixture struct {
	*fixture
	store *countingStore
}

func newCachedFixture(t testing.TB, change func(*decide.Config, *decide.Ports), list ...rule) cachedFixture {
	t.Helper()
	r := cachedFixture{store: &countingStore{}}
	r.fixture = newFixture(t, func(c *decide.Config, p *decide.Ports) {
		cache, err := memory.NewOverLimit(p.Clock, memory.Config{OverLimitBytes: 1 << 20})
		must.Succeed(t, err)
		r.store.Store = p.Counters
		p.OverLimit, p.Counters = cache, r.store
		if change != nil {
			change(c, p)
		}
	}, list...)
	return r
}

// expectCalls checks how often f calls the store.
func (r cachedFixture) expectCalls(t testing.TB, want int, f func()) {
	t.Helper()
	before := r.store.calls
	f()
	wantEqual(t, r.store.calls-before, want, "the store was called")
}

func TestOverLimitIsCached(t *testing.T) {
	r := newCachedFixture(t, nil, keyRule("k", perMinute(2)))
	r.expectCalls(t, 3, func() {
		for range 3 {
			r.mustDecide(t, newRequest("k=v"))
		}
	})
	r.expectCalls(t, 0, func() {
		twice := newRequest("k=v")
		twice.Hits = 2
		d := r.mustDecide(t, twice)
		checkCodes(t, d, over, over)
		s := d.Statuses[0]
		if s.Limit != (ratelimit.Limit{RequestsPerUnit: 2, Unit: ratelimit.Minute}) || s.Remaining != 0 ||
			s.UntilReset != 50*time.Second {
			t.Errorf("%+v", s)
		}
		look := newRequest("k=v")
		look.Descriptors[0].Hits = new(uint64)
		checkCodes(t, r.mustDecide(t, look), over, over)
	})
	if got, local := tallyOf(r.onlyRule().Hits),
		r.onlyRule().Hits.OverLocal.Load(); got != (tally{5, 3, 1, 2}) || local != 2 {
		t.Errorf("%+v, %d by the local cache", got, local)
	}
	r.expectCalls(t, 1, func() { checkCodes(t, r.mustDecide(t, newRequest("k=other")), ok, ok) })
	r.clock.Advance(50 * time.Second) // the next window
	r.expectCalls(t, 1, func() { checkCodes(t, r.mustDecide(t, newRequest("k=v")), ok, ok) })
}

func TestOthersAreCountedNextToAKnownOne(t *testing.T) {
	r := newCachedFixture(t, nil, keyRule("a", perMinute(5)), keyRule("b", perMinute(0)))
	r.mustDecide(t, newRequest("b=1"))
	for i := range uint32(3) {
		d := r.mustDecide(t, newRequest("a=1", "b=1", "a=2"))
		checkCodes(t, d, over, ok, over, ok)
		if d.Statuses[0].Remaining != 4-i || d.Statuses[2].Remaining != 4-i {
			t.Errorf("%+v", d.Statuses)
		}
	}
}

// TestNothingIsCountedNextToAKnownOne checks contract L-10 with a cached counter.
func TestNothingIsCountedNextToAKnownOne(t *testing.T) {
	r := newCachedFixture(t, stopWhenOver,
		keyRule("a", perMinute(5)), keyRule("b", perMinute(0)), keyRule("c", perMinute(1)))
	r.mustDecide(t, newRequest("b=1"))
	r.mustDecide(t, newRequest("c=1"))
	three := newRequest("a=1", "b=1", "c=1")
	for range 3 {
		d := r.mustDecide(t, three)
		checkCodes(t, d, over, ok, over, over)
		wantEqual(t, d.Statuses[0].Remaining, 5, "remain")
	}
	wantEqual(t, r.mustDecide(t, newRequest("a=1")).Statuses[0].Remaining, 4, "remain afterwards")
	r.expectCalls(t, 0, func() { checkCodes(t, r.mustDecide(t, newRequest("b=1", "c=1")), over, over, over) })
}

func TestRememberedShadow(t *testing.T) {
	r := newCachedFixture(t, nil, keyRule("k", perMinute(0), inShadow))
	r.mustDecide(t, newRequest("k=v"))
	r.expectCalls(t, 0, func() { checkCodes(t, r.mustDecide(t, newRequest("k=v")), ok, ok) })
	h := r.onlyRule().Hits
	if h.Shadow.Load() != 2 || h.Over.Load() != 2 || h.OverLocal.Load() != 1 {
		t.Errorf("shadow %d, over %d, by the local cache %d", h.Shadow.Load(), h.Over.Load(), h.OverLocal.Load())
	}
}

func TestRememberedQuota(t *testing.T) {
	r := newCachedFixture(t, nil, keyRule("a", perMinute(0), quota), keyRule("b", perMinute(5), quota))
	r.mustDecide(t, newRequest("a=1"))
	checkCodes(t, r.mustDecide(t, newRequest("a=1", "b=1")), ok, over, ok)
	checkCodes(t, r.mustDecide(t, newRequest("a=1")), over, over)
}

func TestGivingBackRemovesFromTheCache(t *testing.T) {
	r := newCachedFixture(t, nil, keyRule("k", perMinute(2)))
	for range 3 {
		r.mustDecide(t, newRequest("k=v"))
	}
	give := newRequest("k=v")
	two := uint64(2)
	give.Descriptors[0].GiveBack, give.Descriptors[0].Hits = true, &two
	checkCodes(t, r.mustDecide(t, give), ok, ok)
	checkCodes(t, r.mustDecide(t, newRequest("k=v")), ok, ok)
	checkCodes(t, r.mustDecide(t, newRequest("k=v")), over, over)
	// One request that first gives hits back and then adds some.
	both := newRequest("k=v", "k=v")
	both.Descriptors[0] = give.Descriptors[0]
	checkCodes(t, r.mustDecide(t, both), ok, ok, ok)
}

func TestACachedCounterIsForItsLimit(t *testing.T) {
	r := newCachedFixture(t, nil, keyRule("k", perMinute(1)))
	r.mustDecide(t, newRequest("k=v"))
	checkCodes(t, r.mustDecide(t, newRequest("k=v")), over, over)
	with := func(n uint32) *ratelimit.Request {
		request := newRequest("k=v")
		request.Descriptors[0].Override = &ratelimit.Limit{RequestsPerUnit: n, Unit: ratelimit.Minute}
		return request
	}
	checkCodes(t, r.mustDecide(t, with(3)), ok, ok)
	checkCodes(t, r.mustDecide(t, with(3)), over, over)
	r.expectCalls(t, 0, func() {
		checkCodes(t, r.mustDecide(t, with(3)), over, over)
		checkCodes(t, r.mustDecide(t, with(2)), over, over)
		checkCodes(t, r.mustDecide(t, newRequest("k=v")), over, over)
	})
	checkCodes(t, r.mustDecide(t, with(9)), ok, ok)
}

func TestARaisedLimitCountsAtOnce(t *testing.T) {
	compile := func(n uint32) *ruleset.Set {
		set, err := ruleset.Compile([]ruleset.Source{
			{Domain: text("d"), Descriptors: []rule{keyRule("k", perMinute(n))}},
		}, ruleset.Options{})
		must.Succeed(t, err)
		return set
	}
	loaded := compile(1)
	r := newCachedFixture(t, func(_ *decide.Config, p *decide.Ports) {
		p.Rules = func() *ruleset.Set { return loaded }
	})
	for range 3 {
		r.mustDecide(t, newRequest("k=v"))
	}
	loaded = compile(10)
	checkCodes(t, r.mustDecide(t, newRequest("k=v")), ok, ok)
	loaded = compile(1)
	r.expectCalls(t, 0, func() { checkCodes(t, r.mustDecide(t, newRequest("k=v")), over, over) })
}

func TestReplacedLimitsAreNotKnownOver(t *testing.T) {
	r := newCachedFixture(t, nil, keyRule("a", withName(perMinute(0), "a")),
		keyRule("b", withName(perMinute(5), "b", "a")))
	r.mustDecide(t, newRequest("a=1"))
	d := r.mustDecide(t, newRequest("a=1", "b=1"))
	checkCodes(t, d, ok, ok, ok)
	if d.Statuses[0].HasLimit() {
		t.Errorf("%+v", d.Statuses[0])
	}
}

// TestCacheWhileTheStoreFails: a counter that is known to be over its limit stays so in every mode;
// what the local store counted is not cached.
func TestCacheWhileTheStoreFails(t *testing.T) {
	for _, mode := range []decide.FailureMode{decide.FailError, decide.FailOpen, decide.FailClosed, decide.FailLocal} {
		r := newCachedFixture(t, func(c *decide.Config, p *decide.Ports) {
			c.FailureMode = mode
			p.Local = memory.NewCounters(p.Clock, memory.Config{MaxCounters: 100})
		}, keyRule("k", perMinute(1)))
		r.mustDecide(t, newRequest("k=v"))
		r.mustDecide(t, newRequest("k=v"))
		r.store.fails = true
		checkCodes(t, r.mustDecide(t, newRequest("k=v")), over, over)
		d, err := r.Decide(t.Context(), newRequest("k=v", "k=w"))
		switch mode {
		case decide.FailError:
			if !fault.Is(err, fault.Unavailable) {
				t.Errorf("error: %v", err)
			}
		case decide.FailOpen:
			checkCodes(t, d, over, over, ok)
		case decide.FailClosed:
			checkCodes(t, d, over, over, over)
		case decide.FailLocal:
			checkCodes(t, d, over, over, ok)
			checkCodes(t, r.mustDecide(t, newRequest("k=w")), over, over)
			r.store.fails = false
			checkCodes(t, r.mustDecide(t, newRequest("k=w")), ok, ok)
		}
	}
}

// TestCacheChangesNoAnswer: with single hits, which all count alike once a limit is reached, a
// Decider with the cache gives the same answers as one without it.
func TestCacheChangesNoAnswer(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		stop := rapid.Bool().Draw(rt, "stop when over")
		change := func(c *decide.Config, _ *decide.Ports) { c.StopWhenOver = stop }
		list := []rule{keyRule("a", perMinute(0)), keyRule("b", perMinute(1)), keyRule("c", perMinute(3))}
		plain, cached := newFixture(t, change, list...), newCachedFixture(t, change, list...)
		for range rapid.IntRange(1, 30).Draw(rt, "calls") {
			step := time.Duration(rapid.IntRange(0, 20).Draw(rt, "seconds")) * time.Second
			plain.clock.Advance(step)
			cached.clock.Advance(step)
			paths := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a=1", "b=1", "b=2", "c=1", "none=1"}), 1, 4,
				rapid.ID[string]).Draw(rt, "paths")
			r := newRequest(paths...)
			for i := range r.Descriptors {
				if rapid.Bool().Draw(rt, "look") {
					r.Descriptors[i].Hits = new(uint64)
				}
			}
			want, got := plain.mustDecide(t, r), cached.mustDecide(t, r)
			for i := range want.Statuses { // the rules are of different sets
				want.Statuses[i].Rule, got.Statuses[i].Rule = nil, nil
			}
			if got.Code != want.Code || !slices.Equal(got.Statuses, want.Statuses) {
				rt.Fatalf("%q: %+v, want %+v", paths, got, want)
			}
		}
	})
}

func TestGlobalQuotaModeIsForOverridesToo(t *testing.T) {
	b := newFixture(t, func(c *decide.Config, _ *decide.Ports) { c.Quota = true }, keyRule("k", perMinute(1)))
	r := newRequest("k=1", "k=2")
	for i := range r.Descriptors {
		r.Descriptors[i].Override = &ratelimit.Limit{RequestsPerUnit: uint32(i), Unit: ratelimit.Minute}
	}
	d := b.mustDecide(t, r)
	checkCodes(t, d, ok, over, ok)
	if !d.Statuses[0].Quota || d.Statuses[0].Rule != nil {
		t.Errorf("%+v", d.Statuses[0])
	}
	checkCodes(t, b.mustDecide(t, r), over, over, over)
}

func BenchmarkKnownOver(bm *testing.B) {
	r := newCachedFixture(bm, nil, keyRule("k", perMinute(0)))
	request := newRequest("k=v")
	r.mustDecide(bm, request)
	bm.ReportAllocs()
	for bm.Loop() {
		r.mustDecide(bm, request)
	}
}

// TestRefusedTogetherIsNotKnownOver: under contract L-10 two descriptors of one counter are refused
// together although each fits alone. The cache must not take that for a counter that is over its
// limit.
func TestRefusedTogetherIsNotKnownOver(t *testing.T) {
	for _, l := range []*ruleset.Limit{by("sliding_window", 0), by("token_bucket", 1)} {
		l.Requests.Count = 1
		shared := keyRule("path", l)
		shared.Value, shared.ShareThreshold = text("/reports/*"), true
		r := newCachedFixture(t, stopWhenOver, shared)
		d := r.mustDecide(t, newRequest("path=/reports/1", "path=/reports/2"))
		if d.Code != over {
			t.Errorf("%s: two hits are within a limit of one: %+v", l.Algorithm.Value, d)
		}
		checkCodes(t, r.mustDecide(t, newRequest("path=/reports/1")), ok, ok)
		checkCodes(t, r.mustDecide(t, newRequest("path=/reports/1")), over, over)
		r.expectCalls(t, 0, func() { // a single hit that does not fit is known
			checkCodes(t, r.mustDecide(t, newRequest("path=/reports/2")), over, over)
		})
	}
}

// TestARaisedBucketCountsAtOnce raises the burst, and the rate, of a bucket that is known to be
// empty.
func TestARaisedBucketCountsAtOnce(t *testing.T) {
	bucket := func(limit, burst uint32) *ruleset.Set {
		l := by("token_bucket", burst)
		l.Requests.Count = limit
		set, err := ruleset.Compile([]ruleset.Source{{Domain: text("d"), Descriptors: []rule{keyRule("k", l)}}},
			ruleset.Options{})
		must.Succeed(t, err)
		return set
	}
	loaded := bucket(1, 1)
	r := newCachedFixture(t, func(_ *decide.Config, p *decide.Ports) {
		p.Rules = func() *ruleset.Set { return loaded }
	})
	checkCodes(t, r.mustDecide(t, newRequest("k=v")), ok, ok)
	checkCodes(t, r.mustDecide(t, newRequest("k=v")), over, over)
	loaded = bucket(1, 100)
	checkCodes(t, r.mustDecide(t, newRequest("k=v")), ok, ok)
	loaded = bucket(1, 1)
	checkCodes(t, r.mustDecide(t, newRequest("k=v")), over, over)
	loaded = bucket(60, 1)
	d := r.mustDecide(t, newRequest("k=v"))
	checkCodes(t, d, over, over)
	wantEqual(t, d.Statuses[0].UntilReset, time.Second, "one hit a second fits after")
	r.clock.Advance(time.Second)
	checkCodes(t, r.mustDecide(t, newRequest("k=v")), ok, ok)
}
