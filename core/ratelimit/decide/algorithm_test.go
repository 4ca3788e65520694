package decide_test

import (
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/decide"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
)

// by returns a limit of ten a minute of an algorithm; a burst of 0 is left out.
func by(algorithm string, burst uint32) *ruleset.Limit {
	l := perMinute(10)
	l.Algorithm = &ruleset.Text{Value: algorithm}
	if burst > 0 {
		l.Burst = &ruleset.Requests{Count: burst}
	}
	return l
}

// withHits returns a request of one descriptor with hits.
func withHits(path string, hits uint64) *ratelimit.Request {
	r := newRequest(path)
	r.Descriptors[0].Hits = &hits
	return r
}

// TestAlgorithms: a refused call is not counted, what fits is what remains, and the reset is the
// time until these hits fit.
func TestAlgorithms(t *testing.T) {
	b := newFixture(t, nil, keyRule("s", by("sliding_window", 0)), keyRule("b", by("token_bucket", 4)))
	// The clock is at 10 s of a minute: 50 s are left of the window.
	for _, step := range []struct {
		path      string
		hits      uint64
		code      ratelimit.Code
		remaining uint32
		reset     time.Duration
		after     time.Duration // before the next step
	}{
		{"s=1", 0, ok, 10, 50 * time.Second, 0},
		{"s=1", 8, ok, 2, 50 * time.Second, 0},
		{"s=1", 3, over, 2, 50*time.Second + 8*time.Second, 0}, // 8 × (1 - x) ≤ 7 in the next window
		{"s=1", 11, over, 2, time.Minute, 0},
		{"s=1", 2, ok, 0, 50 * time.Second, 0},
		{"s=1", 1, over, 0, 56 * time.Second, 50 * time.Second},
		{"s=1", 1, over, 0, 6 * time.Second, 30 * time.Second}, // ten of the window before, all covered
		{"s=1", 5, ok, 0, 30 * time.Second, 0},                 // half of them covered
		{"b=1", 4, ok, 0, 24 * time.Second, 0},                 // six seconds a hit
		{"b=1", 1, over, 0, 6 * time.Second, 0},
		{"b=1", 3, over, 0, 18 * time.Second, 0},
		{"b=1", 5, over, 0, time.Minute, 7 * time.Second},
		{"b=1", 0, ok, 1, 17 * time.Second, 0},
		{"b=1", 1, ok, 0, 23 * time.Second, time.Hour},
		{"b=1", 1, ok, 3, 6 * time.Second, 0},
	} {
		d := b.mustDecide(t, withHits(step.path, step.hits))
		if s := d.Statuses[0]; d.Code != step.code || s.Code != step.code || s.Remaining != step.remaining ||
			s.UntilReset != step.reset {
			t.Errorf("%s by %d: %+v, want %+v", step.path, step.hits, s, step)
		}
		b.clock.Advance(step.after)
	}
}

// TestAlgorithmStatistics: refused hits are over the limit, and near is measured against the bound.
func TestAlgorithmStatistics(t *testing.T) {
	for _, l := range []*ruleset.Limit{by("sliding_window", 0), by("token_bucket", 10)} {
		b := newFixture(t, nil, keyRule("k", l))
		b.mustDecide(t, withHits("k=v", 7))
		b.mustDecide(t, withHits("k=v", 2)) // 8 is the bound of near
		b.mustDecide(t, withHits("k=v", 5)) // refused
		b.mustDecide(t, withHits("k=v", 0))
		b.mustDecide(t, withHits("k=v", 1))
		hits := b.onlyRule().Hits
		wantEqual(t, tallyOf(hits), (tally{15, 5, 2, 10}), "%s", l.Algorithm.Value)
	}
}

// TestAlgorithmInShadow: what would be refused passes, and is counted as over.
func TestAlgorithmInShadow(t *testing.T) {
	l := by("token_bucket", 1)
	shadow := true
	l.Shadow = &shadow
	b := newFixture(t, nil, keyRule("k", l))
	b.mustDecide(t, newRequest("k=v"))
	d := b.mustDecide(t, newRequest("k=v"))
	checkCodes(t, d, ok, ok)
	if got := b.onlyRule().Hits; got.Over.Load() != 1 || got.Shadow.Load() != 1 {
		t.Errorf("over %d, shadow %d", got.Over.Load(), got.Shadow.Load())
	}
}

// TestAlgorithmsTogether: with STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT a refusal of one keeps the
// hits of all others from being counted, whatever their algorithms.
func TestAlgorithmsTogether(t *testing.T) {
	b := newFixture(t, stopWhenOver,
		keyRule("f", perMinute(10)), keyRule("s", by("sliding_window", 0)), keyRule("b", by("token_bucket", 1)))
	all := func() ratelimit.Decision { return b.mustDecide(t, newRequest("f=1", "s=1", "b=1")) }
	checkCodes(t, all(), ok, ok, ok, ok)
	for range 3 {
		d := all()
		checkCodes(t, d, over, ok, ok, over)
		if d.Statuses[0].Remaining != 9 || d.Statuses[1].Remaining != 9 || d.Statuses[2].Remaining != 0 {
			t.Errorf("%+v", d.Statuses)
		}
	}
	checkCodes(t, b.mustDecide(t, withHits("f=1", 9)), ok, ok)
	checkCodes(t, b.mustDecide(t, withHits("f=1", 1)), over, over)
	checkCodes(t, b.mustDecide(t, newRequest("f=1", "s=1")), over, over, ok)
	if d := b.mustDecide(t, withHits("s=1", 0)); d.Statuses[0].Remaining != 9 {
		t.Errorf("the sliding window has %d left", d.Statuses[0].Remaining)
	}
}

// TestZeroWithAnyAlgorithm: a limit of zero is always over, also for a look.
func TestZeroWithAnyAlgorithm(t *testing.T) {
	for _, algorithm := range ratelimit.AlgorithmNames() {
		l := by(algorithm, 0)
		l.Requests.Count = 0
		b := newFixture(t, nil, keyRule("k", l))
		checkCodes(t, b.mustDecide(t, newRequest("k=v")), over, over)
		checkCodes(t, b.mustDecide(t, withHits("k=v", 0)), over, over)
	}
}

// TestOverridesAreFixedWindows: the limit of a request is counted in fixed windows, also in place
// of a rule with another algorithm, and apart from it.
func TestOverridesAreFixedWindows(t *testing.T) {
	b := newFixture(t, nil, keyRule("k", by("token_bucket", 2)))
	r := newRequest("k=v")
	r.Descriptors[0].Override = &ratelimit.Limit{RequestsPerUnit: 1, Unit: ratelimit.Minute}
	checkCodes(t, b.mustDecide(t, r), ok, ok)
	d := b.mustDecide(t, r)
	checkCodes(t, d, over, over)
	wantEqual(t, d.Statuses[0].UntilReset, 50*time.Second, "the reset")
	checkCodes(t, b.mustDecide(t, newRequest("k=v")), ok, ok)
}

// TestAlgorithmsAreCached: the local cache forgets a key when a hit fits again, and answers single
// hits only.
func TestAlgorithmsAreCached(t *testing.T) {
	r := newCachedFixture(t, nil, keyRule("b", by("token_bucket", 4)))
	r.mustDecide(t, withHits("b=1", 4))
	r.expectCalls(t, 1, func() { checkCodes(t, r.mustDecide(t, newRequest("b=1")), over, over) })
	r.clock.Advance(2500 * time.Millisecond)
	r.expectCalls(t, 0, func() {
		d := r.mustDecide(t, newRequest("b=1"))
		checkCodes(t, d, over, over)
		wantEqual(t, d.Statuses[0].UntilReset, 4*time.Second, "the reset")
	})
	r.expectCalls(t, 2, func() {
		checkCodes(t, r.mustDecide(t, withHits("b=1", 0)), ok, ok)
		checkCodes(t, r.mustDecide(t, withHits("b=1", 2)), over, over)
	})
	r.clock.Advance(3500 * time.Millisecond)
	r.expectCalls(t, 1, func() { checkCodes(t, r.mustDecide(t, newRequest("b=1")), ok, ok) })
	// A refused batch does not block fewer hits that still fit.
	r.clock.Advance(13 * time.Second)
	checkCodes(t, r.mustDecide(t, withHits("b=1", 3)), over, over)
	r.expectCalls(t, 1, func() { checkCodes(t, r.mustDecide(t, newRequest("b=1")), ok, ok) })
}

// TestGivingBackToAlgorithms: hits that are given back fit again.
func TestGivingBackToAlgorithms(t *testing.T) {
	for _, l := range []*ruleset.Limit{by("sliding_window", 0), by("token_bucket", 10)} {
		b := newFixture(t, nil, keyRule("k", l))
		b.mustDecide(t, withHits("k=v", 10))
		back := withHits("k=v", 4)
		back.Descriptors[0].GiveBack = true
		if d := b.mustDecide(t, back); d.Code != ok || d.Statuses[0].Remaining != 4 {
			t.Errorf("%s: %+v", l.Algorithm.Value, d)
		}
		checkCodes(t, b.mustDecide(t, withHits("k=v", 4)), ok, ok)
		checkCodes(t, b.mustDecide(t, withHits("k=v", 1)), over, over)
	}
}

// TestAlgorithmsWithoutStore: the failure modes decide about all algorithms.
func TestAlgorithmsWithoutStore(t *testing.T) {
	for mode, want := range map[decide.FailureMode]ratelimit.Code{decide.FailOpen: ok, decide.FailClosed: over} {
		b := newFixture(t, func(c *decide.Config, p *decide.Ports) { c.FailureMode, p.Counters = mode, failingStore{} },
			keyRule("k", by("token_bucket", 4)))
		checkCodes(t, b.mustDecide(t, newRequest("k=v")), want, want)
	}
	b := newFixture(t, func(c *decide.Config, p *decide.Ports) { p.Counters = failingStore{} },
		keyRule("k", by("sliding_window", 0)))
	if _, err := b.Decide(t.Context(), newRequest("k=v")); err == nil {
		t.Error("the store fails, and the call succeeds")
	}
	local := newFixture(t, func(c *decide.Config, p *decide.Ports) {
		c.FailureMode, p.Local, p.Counters = decide.FailLocal, p.Counters, failingStore{}
	}, keyRule("k", by("token_bucket", 1)))
	checkCodes(t, local.mustDecide(t, newRequest("k=v")), ok, ok)
	checkCodes(t, local.mustDecide(t, newRequest("k=v")), over, over)
}
