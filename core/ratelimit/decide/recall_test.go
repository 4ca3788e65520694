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
)

// tap tells how often a store was asked, and can be shut.
type tap struct {
	counter.Store
	asked int
	shut  bool
}

func (s *tap) Add(ctx context.Context, hits []counter.Hit, after []uint64) error {
	s.asked++
	if s.shut {
		return errAway
	}
	return s.Store.Add(ctx, hits, after)
}

func (s *tap) AddUnlessOver(ctx context.Context, hits []counter.Hit, after []uint64) error {
	s.asked++
	if s.shut {
		return errAway
	}
	return s.Store.AddUnlessOver(ctx, hits, after)
}

// swap is rules that are reloaded.
type swap struct{ set *ruleset.Set }

func (s *swap) Current() *ruleset.Set { return s.set }

// recalling is a bench whose decider remembers what is over.
type recalling struct {
	*bench
	tap *tap
}

func remember(t testing.TB, change func(*decide.Config, *decide.Ports), list ...rule) recalling {
	t.Helper()
	r := recalling{tap: &tap{}}
	r.bench = open(t, func(c *decide.Config, p *decide.Ports) {
		cache, err := memory.NewOverLimit(p.Clock, memory.Config{OverLimitBytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		r.tap.Store = p.Counters
		p.OverLimit, p.Counters = cache, r.tap
		if change != nil {
			change(c, p)
		}
	}, list...)
	return r
}

// asks checks how often the store is asked in the course of f.
func (r recalling) asks(t testing.TB, want int, f func()) {
	t.Helper()
	before := r.tap.asked
	f()
	if got := r.tap.asked - before; got != want {
		t.Errorf("the store was asked %d times, want %d", got, want)
	}
}

func TestOverLimitIsRemembered(t *testing.T) {
	r := remember(t, nil, on("k", perMinute(2)))
	r.asks(t, 3, func() {
		for range 3 {
			r.must(t, ask("k=v"))
		}
	})
	r.asks(t, 0, func() {
		twice := ask("k=v")
		twice.Hits = 2
		d := r.must(t, twice)
		codes(t, d, over, over)
		s := d.Statuses[0]
		if s.Limit != (ratelimit.Limit{RequestsPerUnit: 2, Unit: ratelimit.Minute}) || s.Remaining != 0 || s.UntilReset != 50*time.Second {
			t.Errorf("%+v", s)
		}
		look := ask("k=v")
		look.Descriptors[0].Hits = new(uint64)
		codes(t, r.must(t, look), over, over)
	})
	if got, local := tallyOf(r.only().Hits), r.only().Hits.OverLocal.Load(); got != (tally{5, 3, 1, 2}) || local != 2 {
		t.Errorf("%+v, %d by the local cache", got, local)
	}
	r.asks(t, 1, func() { codes(t, r.must(t, ask("k=other")), ok, ok) })
	r.clock.at = now.Add(50 * time.Second) // the next window
	r.asks(t, 1, func() { codes(t, r.must(t, ask("k=v")), ok, ok) })
}

func TestOthersAreCountedBesideARememberedOne(t *testing.T) {
	r := remember(t, nil, on("a", perMinute(5)), on("b", perMinute(0)))
	r.must(t, ask("b=1"))
	for i := range uint32(3) {
		d := r.must(t, ask("a=1", "b=1", "a=2"))
		codes(t, d, over, ok, over, ok)
		if d.Statuses[0].Remaining != 4-i || d.Statuses[2].Remaining != 4-i {
			t.Errorf("%+v", d.Statuses)
		}
	}
}

// TestNothingIsCountedBesideARememberedOne checks contract L-10 with a remembered counter.
func TestNothingIsCountedBesideARememberedOne(t *testing.T) {
	r := remember(t, func(c *decide.Config, _ *decide.Ports) { c.StopWhenOver = true },
		on("a", perMinute(5)), on("b", perMinute(0)), on("c", perMinute(1)))
	r.must(t, ask("b=1"))
	r.must(t, ask("c=1"))
	three := ask("a=1", "b=1", "c=1")
	for range 3 {
		d := r.must(t, three)
		codes(t, d, over, ok, over, over)
		if d.Statuses[0].Remaining != 5 {
			t.Errorf("%d remain, want 5", d.Statuses[0].Remaining)
		}
	}
	if got := r.must(t, ask("a=1")).Statuses[0].Remaining; got != 4 {
		t.Errorf("%d remain afterwards, want 4", got)
	}
	r.asks(t, 0, func() { codes(t, r.must(t, ask("b=1", "c=1")), over, over, over) })
}

// TestLookAtZeroStopsTheOthers: a limit of zero is over also for who only looks,
// so nothing else is counted.
func TestLookAtZeroStopsTheOthers(t *testing.T) {
	b := open(t, func(c *decide.Config, _ *decide.Ports) { c.StopWhenOver = true }, on("a", perMinute(5)), on("b", perMinute(0)))
	r := ask("a=1", "b=1")
	r.Descriptors[1].Hits = new(uint64)
	codes(t, b.must(t, r), over, ok, over)
	if got := b.must(t, ask("a=1")).Statuses[0].Remaining; got != 4 {
		t.Errorf("%d remain, want 4", got)
	}
}

func TestRememberedShadow(t *testing.T) {
	yes := true
	shadowed := on("k", perMinute(0))
	shadowed.Shadow = &yes
	r := remember(t, nil, shadowed)
	r.must(t, ask("k=v"))
	r.asks(t, 0, func() { codes(t, r.must(t, ask("k=v")), ok, ok) })
	h := r.only().Hits
	if h.Shadow.Load() != 2 || h.Over.Load() != 2 || h.OverLocal.Load() != 1 {
		t.Errorf("shadow %d, over %d, by the local cache %d", h.Shadow.Load(), h.Over.Load(), h.OverLocal.Load())
	}
}

func TestRememberedQuota(t *testing.T) {
	quota := func(key string, n uint32) rule {
		r := on(key, perMinute(n))
		r.QuotaMode = true
		return r
	}
	r := remember(t, nil, quota("a", 0), quota("b", 5))
	r.must(t, ask("a=1"))
	codes(t, r.must(t, ask("a=1", "b=1")), ok, over, ok)
	codes(t, r.must(t, ask("a=1")), over, over)
}

func TestGivingBackEndsAVerdict(t *testing.T) {
	r := remember(t, nil, on("k", perMinute(2)))
	for range 3 {
		r.must(t, ask("k=v"))
	}
	give := ask("k=v")
	two := uint64(2)
	give.Descriptors[0].GiveBack, give.Descriptors[0].Hits = true, &two
	codes(t, r.must(t, give), ok, ok)
	codes(t, r.must(t, ask("k=v")), ok, ok)
	codes(t, r.must(t, ask("k=v")), over, over)
	// One request that gives back first and then asks.
	both := ask("k=v", "k=v")
	both.Descriptors[0] = give.Descriptors[0]
	codes(t, r.must(t, both), ok, ok, ok)
}

func TestAVerdictIsForItsLimit(t *testing.T) {
	r := remember(t, nil, on("k", perMinute(1)))
	r.must(t, ask("k=v"))
	codes(t, r.must(t, ask("k=v")), over, over)
	with := func(n uint32) *ratelimit.Request {
		asked := ask("k=v")
		asked.Descriptors[0].Override = &ratelimit.Limit{RequestsPerUnit: n, Unit: ratelimit.Minute}
		return asked
	}
	codes(t, r.must(t, with(3)), ok, ok)
	codes(t, r.must(t, with(3)), over, over)
	r.asks(t, 0, func() {
		codes(t, r.must(t, with(3)), over, over)
		codes(t, r.must(t, with(2)), over, over)
		codes(t, r.must(t, ask("k=v")), over, over)
	})
	codes(t, r.must(t, with(9)), ok, ok)
}

func TestARaisedLimitCountsAtOnce(t *testing.T) {
	compile := func(n uint32) *ruleset.Set {
		set, err := ruleset.Compile([]ruleset.Source{{Domain: text("d"), Descriptors: []rule{on("k", perMinute(n))}}}, ruleset.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	loaded := &swap{compile(1)}
	r := remember(t, func(_ *decide.Config, p *decide.Ports) { p.Rules = loaded })
	for range 3 {
		r.must(t, ask("k=v"))
	}
	loaded.set = compile(10)
	codes(t, r.must(t, ask("k=v")), ok, ok)
	loaded.set = compile(1)
	r.asks(t, 0, func() { codes(t, r.must(t, ask("k=v")), over, over) })
}

func TestReplacedLimitsAreNotRecalled(t *testing.T) {
	r := remember(t, nil, on("a", named(perMinute(0), "a")), on("b", named(perMinute(5), "b", "a")))
	r.must(t, ask("a=1"))
	d := r.must(t, ask("a=1", "b=1"))
	codes(t, d, ok, ok, ok)
	if d.Statuses[0].Limited() {
		t.Errorf("%+v", d.Statuses[0])
	}
}

// TestRecallWhileTheStoreIsAway: what is known to be over stays so in every mode;
// what the process counted itself while the store was away is not remembered.
func TestRecallWhileTheStoreIsAway(t *testing.T) {
	for _, mode := range []decide.FailureMode{decide.FailError, decide.FailOpen, decide.FailClosed, decide.FailLocal} {
		r := remember(t, func(c *decide.Config, p *decide.Ports) {
			c.FailureMode = mode
			p.Local = memory.NewCounters(p.Clock, memory.Config{MaxCounters: 100})
		}, on("k", perMinute(1)))
		r.must(t, ask("k=v"))
		r.must(t, ask("k=v"))
		r.tap.shut = true
		codes(t, r.must(t, ask("k=v")), over, over)
		d, err := r.Decide(t.Context(), ask("k=v", "k=w"))
		switch mode {
		case decide.FailError:
			if !fault.Is(err, fault.Unavailable) {
				t.Errorf("error: %v", err)
			}
		case decide.FailOpen:
			codes(t, d, over, over, ok)
		case decide.FailClosed:
			codes(t, d, over, over, over)
		case decide.FailLocal:
			codes(t, d, over, over, ok)
			codes(t, r.must(t, ask("k=w")), over, over)
			r.tap.shut = false
			codes(t, r.must(t, ask("k=w")), ok, ok)
		}
	}
}

// TestRecallChangesNoAnswer: with single hits, which all count alike once a limit
// is reached, nobody can tell a decider that remembers from one that asks.
func TestRecallChangesNoAnswer(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		stop := rapid.Bool().Draw(rt, "stop when over")
		change := func(c *decide.Config, _ *decide.Ports) { c.StopWhenOver = stop }
		list := []rule{on("a", perMinute(0)), on("b", perMinute(1)), on("c", perMinute(3))}
		asking, remembering := open(t, change, list...), remember(t, change, list...)
		for range rapid.IntRange(1, 30).Draw(rt, "calls") {
			step := time.Duration(rapid.IntRange(0, 20).Draw(rt, "seconds")) * time.Second
			asking.clock.at = asking.clock.at.Add(step)
			remembering.clock.at = asking.clock.at
			paths := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a=1", "b=1", "b=2", "c=1", "none=1"}), 1, 4, rapid.ID[string]).Draw(rt, "paths")
			r := ask(paths...)
			for i := range r.Descriptors {
				if rapid.Bool().Draw(rt, "look") {
					r.Descriptors[i].Hits = new(uint64)
				}
			}
			want, got := asking.must(t, r), remembering.must(t, r)
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
	b := open(t, func(c *decide.Config, _ *decide.Ports) { c.Quota = true }, on("k", perMinute(1)))
	r := ask("k=1", "k=2")
	for i := range r.Descriptors {
		r.Descriptors[i].Override = &ratelimit.Limit{RequestsPerUnit: uint32(i), Unit: ratelimit.Minute}
	}
	d := b.must(t, r)
	codes(t, d, ok, over, ok)
	if !d.Statuses[0].Quota || d.Statuses[0].Rule != nil {
		t.Errorf("%+v", d.Statuses[0])
	}
	codes(t, b.must(t, r), over, over, over)
}

func BenchmarkRecall(bm *testing.B) {
	r := remember(bm, nil, on("k", perMinute(0)))
	asked := ask("k=v")
	r.must(bm, asked)
	bm.ReportAllocs()
	for bm.Loop() {
		r.must(bm, asked)
	}
}
