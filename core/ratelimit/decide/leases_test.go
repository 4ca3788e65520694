package decide_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/adapters/memory"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/decide"
	"github.com/tollgate-dev/tollgate/core/ratelimit/lease"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/test/must"
)

// leased is a limit of a minute that says lease.
func leased(n uint32, mode string) *ruleset.Limit {
	l := perMinute(n)
	l.Lease = &ruleset.Text{Value: mode}
	return l
}

// leaseRules use everything that a fixed window can be combined with.
func leaseRules() []rule {
	on := true
	shadow := leased(100, "auto")
	shadow.Shadow = &on
	shared := keyRule("shared", leased(300, "auto"))
	shared.Value, shared.ShareThreshold = text("a*"), true
	bucket := perMinute(50)
	bucket.Algorithm = &ruleset.Text{Value: "token_bucket"}
	return []rule{
		keyRule("plain", leased(120, "auto")), keyRule("large", leased(5000, "auto")),
		keyRule("zero", leased(0, "auto")),
		keyRule("shadow", shadow), keyRule("quota", leased(60, "auto"), quota), shared,
		keyRule("valued", leased(90, "auto"), detailed),
		keyRule("named", withName(leased(80, "auto"), "base")),
		keyRule("instead", withName(leased(70, "auto"), "", "base")),
		keyRule("exact", leased(40, "off")), keyRule("default", perMinute(40)), keyRule("bucket", bucket),
	}
}

// withLeases adds leases to a decider, and returns them.
func withLeases(on bool, store counter.Store, c *decide.Config, p *decide.Ports, k *clocktest.Manual) *lease.Leases {
	if store == nil {
		store = memory.NewCounters(k, memory.Config{MaxCounters: 10_000})
	}
	p.Clock, p.Counters = k, store
	if !on {
		return nil
	}
	c.Leases, p.Leases = true, lease.New(store, k, nil)
	return p.Leases
}

// drawLeaseRequest returns a request of one to three descriptors.
func drawLeaseRequest(t *rapid.T) *ratelimit.Request {
	r := &ratelimit.Request{Domain: "d", Hits: rapid.SampledFrom([]uint32{0, 0, 0, 1, 3}).Draw(t, "hits")}
	keys := []string{
		"plain", "plain", "large", "zero", "shadow", "quota", "shared", "valued", "named", "instead", "exact",
		"default", "bucket", "unknown",
	}
	for range rapid.SampledFrom([]int{1, 1, 1, 2, 3}).Draw(t, "descriptors") {
		d := ratelimit.Descriptor{Entries: []ratelimit.Entry{{
			Key:   rapid.SampledFrom(keys).Draw(t, "key"),
			Value: rapid.SampledFrom([]string{"a", "a", "ab"}).Draw(t, "value"),
		}}}
		switch rapid.IntRange(0, 30).Draw(t, "kind") {
		case 0:
			d.GiveBack = true
		case 1:
			none := uint64(0)
			d.Hits = &none
		case 2:
			many := rapid.Uint64Range(2, 200).Draw(t, "many")
			d.Hits = &many
		case 3:
			// On the counter of a rule, its hits would count like those of another instance.
			d.Override, d.Entries[0].Value = &ratelimit.Limit{RequestsPerUnit: 30, Unit: ratelimit.Minute}, "override"
		}
		r.Descriptors = append(r.Descriptors, d)
	}
	return r
}

// statisticsOf returns the statistics of all rules and series.
func statisticsOf(b *fixture) map[string][6]uint64 {
	list := map[string][6]uint64{}
	add := func(name string, h *ratelimit.Hits) {
		list[name] = [6]uint64{
			h.Total(), h.Over.Load(), h.Near.Load(), h.Within.Load(), h.Shadow.Load(), h.OverLocal.Load(),
		}
	}
	for r := range b.set.Rules() {
		add(r.Path, r.Hits)
	}
	for s := range b.Series() {
		add("series "+s.Path, s.Hits)
	}
	return list
}

// TestLeasesChangeNoAnswer checks that an instance that is alone decides every request with leases
// as it does without: codes, remaining hits, resets and statistics, with shadow mode, quotas,
// replaced limits, shared counters, overrides, other algorithms, the local cache, and hits of every
// number.
func TestLeasesChangeNoAnswer(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cached, kept := rapid.Bool().Draw(rt, "local cache"), clocktest.NewManual(now)
		var leases *lease.Leases
		open := func(on bool) *fixture {
			return newFixture(t, func(c *decide.Config, p *decide.Ports) {
				if l := withLeases(on, nil, c, p, kept); l != nil {
					leases = l
				}
				if cached {
					p.OverLimit = newOverLimitCache(t, kept)
				}
			}, leaseRules()...)
		}
		with, without := open(true), open(false)
		for range rapid.IntRange(1, 12).Draw(rt, "phases") {
			r := drawLeaseRequest(rt)
			kept.Advance(
				time.Duration(rapid.SampledFrom([]int{0, 50, 500, 3000, 20_000}).Draw(rt, "ms")) * time.Millisecond)
			for range rapid.SampledFrom([]int{1, 3, 120}).Draw(rt, "times") {
				kept.Advance(time.Millisecond)
				got, want := with.mustDecide(t, r), without.mustDecide(t, r)
				sameRules(got, want)
				if !reflect.DeepEqual(got, want) {
					rt.Fatalf("%+v\n got %+v\nwant %+v", r.Descriptors, got, want)
				}
			}
			if rapid.Bool().Draw(rt, "sweep") {
				leases.Sweep(t.Context())
			}
		}
		if got, want := statisticsOf(with), statisticsOf(without); !reflect.DeepEqual(got, want) {
			rt.Fatalf("statistics\n got %v\nwant %v", got, want)
		}
	})
}

// sameRules removes the rules of the statuses, which belong to different sets.
func sameRules(list ...ratelimit.Decision) {
	for _, d := range list {
		for i := range d.Statuses {
			d.Statuses[i].Rule = nil
		}
	}
}

func newOverLimitCache(t testing.TB, c *clocktest.Manual) counter.OverLimitCache {
	cache, err := memory.NewOverLimit(c, memory.Config{OverLimitBytes: 1 << 20})
	must.Succeed(t, err)
	return cache
}

// countedStore counts the hits that reach it.
type countedStore struct {
	counter.Store
	hits int
	away bool
}

func (s *countedStore) Count(ctx context.Context, hits []counter.Hit, results []counter.Result, m counter.Mode) error {
	s.hits += len(hits)
	if s.away {
		return errAway
	}
	return s.Store.Count(ctx, hits, results, m)
}

// TestWhichRulesHaveLeases checks that a rule without the word lease does what COUNTER_LEASES says,
// and that neither overrides nor other algorithms have leases, nor anything with
// STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT.
func TestWhichRulesHaveLeases(t *testing.T) {
	sliding := perMinute(100_000)
	sliding.Algorithm, sliding.Lease = &ruleset.Text{Value: "sliding_window"}, &ruleset.Text{Value: "auto"}
	override := newRequest("plain=v")
	override.Descriptors[0].Override = &ratelimit.Limit{RequestsPerUnit: 100_000, Unit: ratelimit.Minute}
	for name, c := range map[string]struct {
		limit     *ruleset.Limit
		leases    bool
		stop      bool
		request   *ratelimit.Request
		hasLeases bool
	}{
		"default off":      {limit: perMinute(100_000)},
		"default on":       {limit: perMinute(100_000), leases: true, hasLeases: true},
		"auto":             {limit: leased(100_000, "auto"), hasLeases: true},
		"off":              {limit: leased(100_000, "off"), leases: true},
		"other algorithm":  {limit: sliding, leases: true},
		"override":         {limit: leased(100_000, "auto"), leases: true, request: override},
		"stop when over":   {limit: leased(100_000, "auto"), leases: true, stop: true},
		"question of many": {limit: leased(100_000, "auto"), request: withHits("plain=v", 0), hasLeases: true},
	} {
		k := clocktest.NewManual(now)
		store := &countedStore{Store: memory.NewCounters(k, memory.Config{MaxCounters: 10})}
		var leases *lease.Leases
		b := newFixture(t, func(d *decide.Config, p *decide.Ports) {
			leases = withLeases(true, store, d, p, k)
			d.Leases, d.StopWhenOver = c.leases, c.stop
		}, keyRule("plain", c.limit))
		if c.request == nil {
			c.request = newRequest("plain=v")
		}
		for range 100 {
			b.mustDecide(t, c.request)
		}
		wantEqual(t, leases.Stats().Keys.Load() == 1, c.hasLeases, "%s: there is a lease", name)
	}
}

// TestLeasesInFailureModes checks that what an instance holds is spent while the store is away, and
// that the failure mode decides after that.
func TestLeasesInFailureModes(t *testing.T) {
	for mode, want := range map[decide.FailureMode]ratelimit.Code{
		decide.FailError: 0, decide.FailOpen: ok, decide.FailClosed: over, decide.FailLocal: ok,
	} {
		k := clocktest.NewManual(now)
		store := &countedStore{Store: memory.NewCounters(k, memory.Config{MaxCounters: 10})}
		b := newFixture(t, func(c *decide.Config, p *decide.Ports) {
			withLeases(true, store, c, p, k)
			c.FailureMode, p.Local = mode, memory.NewCounters(k, memory.Config{MaxCounters: 10})
		}, keyRule("plain", leased(10_000, "auto")))
		for range 60 {
			b.mustDecide(t, newRequest("plain=v"))
		}
		store.away = true
		spent := 0
		for b.Stats().StoreErrors.Load() == 0 && spent < 1000 {
			d, err := b.Decide(t.Context(), newRequest("plain=v"))
			if b.Stats().StoreErrors.Load() == 0 {
				spent++
				checkCodes(t, d, ok, ok)
			} else if (err != nil) != (mode == decide.FailError) || err == nil && d.Code != want {
				t.Errorf("mode %d: %+v, %v", mode, d, err)
			}
		}
		if spent == 0 || spent > 500 {
			t.Errorf("mode %d: %d hits are spent while the store is away", mode, spent)
		}
	}
}

// TestInstancesWithLeases checks that several instances, some of which are killed, never admit more
// than the limit together, and that they lose no more than the shares of those.
func TestInstancesWithLeases(t *testing.T) {
	const limit, instances, killed = 2_000, 4, 3
	k := clocktest.NewManual(now)
	store := &countedStore{Store: memory.NewCounters(k, memory.Config{MaxCounters: 10})}
	open := func() *fixture {
		return newFixture(t, func(c *decide.Config, p *decide.Ports) { withLeases(true, store, c, p, k) },
			keyRule("plain", leased(limit, "auto")))
	}
	var all []*fixture
	for range instances {
		all = append(all, open())
	}
	admitted, request := 0, newRequest("plain=v")
	for n := range 8 * limit {
		if n%(limit/2) == 0 && n/(limit/2) < killed {
			all[n/(limit/2)] = open()
		}
		if all[n%instances].mustDecide(t, request).Code == ok {
			admitted++
		}
		if n%4 == 0 {
			k.Advance(time.Millisecond)
		}
	}
	if admitted > limit || admitted < limit-(killed+instances)*limit/20 {
		t.Errorf("%d hits of %d are admitted", admitted, limit)
	}
	if store.hits > 8*limit/4 {
		t.Errorf("%d hits of %d reach the store", store.hits, 8*limit)
	}
}

// BenchmarkLeases decides requests of one hot key with a lease, and without in the process.
func BenchmarkLeases(b *testing.B) {
	for _, on := range []bool{true, false} {
		b.Run(fmt.Sprintf("leases=%t", on), func(b *testing.B) {
			k := clocktest.NewManual(now)
			f := newFixture(b, func(c *decide.Config, p *decide.Ports) { withLeases(on, nil, c, p, k) },
				keyRule("plain", perMinute(1<<31)))
			r := newRequest("plain=v")
			b.ReportAllocs()
			for b.Loop() {
				f.mustDecide(b, r)
			}
		})
	}
}
