package decide_test

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/decide"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
)

type tally struct{ total, over, near, within uint64 }

func tallyOf(h *ratelimit.Hits) tally {
	return tally{h.Total(), h.Over.Load(), h.Near.Load(), h.Within.Load()}
}

// onlyRule returns the one rule of the fixture.
func (b *fixture) onlyRule() *ratelimit.Rule {
	for rule := range b.set.Rules() {
		return rule
	}
	return nil
}

func TestAttribution(t *testing.T) {
	tests := map[string]struct {
		batches []uint32
		want    tally
	}{
		"within":                        {[]uint32{8}, tally{8, 0, 0, 8}},
		"near":                          {[]uint32{8, 1}, tally{9, 0, 1, 9}},
		"crossing into near":            {[]uint32{5, 4}, tally{9, 0, 1, 9}},
		"crossing the limit from below": {[]uint32{5, 7}, tally{12, 2, 2, 5}},
		"crossing the limit from near":  {[]uint32{9, 3}, tally{12, 2, 2, 9}},
		"over already":                  {[]uint32{10, 3}, tally{13, 3, 2, 10}},
		"far over at once":              {[]uint32{30}, tally{30, 20, 2, 0}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, nil, keyRule("k", perMinute(10)))
			for _, hits := range test.batches {
				r := newRequest("k=v")
				r.Hits = hits
				b.mustDecide(t, r)
			}
			wantEqual(t, tallyOf(b.onlyRule().Hits), test.want, "got")
		})
	}
}

// TestAttributionAddsUp: each hit of a batch is over the limit or not, whatever the batches.
func TestAttributionAddsUp(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		limit := rapid.Uint32Range(0, 20).Draw(rt, "limit")
		b := newFixture(t, nil, keyRule("k", perMinute(limit)))
		total := uint64(0)
		for _, hits := range rapid.SliceOfN(rapid.Uint32Range(1, 9), 1, 8).Draw(rt, "batches") {
			r := newRequest("k=v")
			r.Hits = hits
			b.mustDecide(t, r)
			total += uint64(hits)
		}
		got := tallyOf(b.onlyRule().Hits)
		wantOver := total - min(total, uint64(limit))
		wantNear := min(total, uint64(limit)) - min(total, uint64(limit)*8/10)
		if got.total != total || got.over != wantOver || got.near != wantNear {
			rt.Fatalf("got %+v of %d hits on a limit of %d", got, total, limit)
		}
	})
}

func seriesPaths(b *fixture) []string {
	var list []string
	for s := range b.Series() {
		list = append(list, s.Path+" "+strings.Join(s.Levels, "|"))
	}
	slices.Sort(list)
	return list
}

func TestSeriesByValue(t *testing.T) {
	detailed := keyRule("user", nil)
	detailed.Descriptors = []rule{{Key: text("op"), Value: text("w*"), DetailedMetric: true, Limit: perMinute(5)}}
	metric := keyRule("tenant", nil)
	metric.ValueToMetric = true
	metric.Descriptors = []rule{
		keyRule("op", perMinute(5)), {Key: text("exact"), Value: text("v"), Limit: perMinute(5)},
	}
	b := newFixture(t, func(c *decide.Config, _ *decide.Ports) { c.MaxSeries = 3 }, detailed, metric)
	b.mustDecide(t,
		newRequest("user=a,op=write", "user=a,op=write", "tenant=x,op=1", "tenant=x,op=2", "tenant=x,exact=v",
			"tenant=y,op=1"))
	want := []string{"tenant_x.exact_v tenant_x|exact_v", "tenant_x.op tenant_x|op", "user_a.op_write user_a|op_write"}
	wantEqual(t, seriesPaths(b), want, "series")
	for s := range b.Series() {
		if s.Path == "user_a.op_write" && s.Hits.Total() != 2 {
			t.Errorf("%d hits on %s", s.Hits.Total(), s.Path)
		}
	}
	for rule := range b.set.Rules() { // there is no room for tenant_y.op
		if want := uint64(strings.Count(rule.Path, "tenant.op")); rule.Hits.Total() != want {
			t.Errorf("%d hits on %s itself", rule.Hits.Total(), rule.Path)
		}
	}
}

// TestLongValuesTakeNoSeries: what callers send must not fill the memory.
func TestLongValuesTakeNoSeries(t *testing.T) {
	b := newFixture(t, nil, keyRule("user", perMinute(5), detailed))
	long := newRequest("user=" + strings.Repeat("x", 200))
	b.mustDecide(t, long)
	long.Descriptors[0].Override = &ratelimit.Limit{RequestsPerUnit: 1, Unit: ratelimit.Minute}
	b.mustDecide(t, long)
	wantEqual(t, seriesPaths(b), []string{"user user"}, "the series")
	wantEqual(t, b.onlyRule().Hits.Total(), 1, "hits on the rule itself")
}

// TestIdleSeriesAreRemoved: when the table is full, a series without a request for an hour is
// removed, and the others stay.
func TestIdleSeriesAreRemoved(t *testing.T) {
	b := newFixture(t, func(c *decide.Config, _ *decide.Ports) { c.MaxSeries = 2 },
		keyRule("user", perMinute(5), detailed))
	b.mustDecide(t, newRequest("user=idle", "user=busy", "user=late"))
	b.clock.Advance(40 * time.Minute)
	b.mustDecide(t, newRequest("user=busy", "user=late"))
	wantEqual(t, seriesPaths(b), []string{"user_busy user_busy", "user_idle user_idle"}, "before an hour the series")
	b.clock.Advance(40 * time.Minute)
	b.mustDecide(t, newRequest("user=late", "user=later"))
	wantEqual(t, seriesPaths(b), []string{"user_busy user_busy", "user_late user_late"}, "after an hour the series")
	wantEqual(t, b.onlyRule().Hits.Total(), 3, "hits on the rule itself")
}

// TestSeriesTogether counts for many values from many callers: nothing is lost and the bound holds.
func TestSeriesTogether(t *testing.T) {
	const callers, values, most = 8, 300, 200
	b := newFixture(t, func(c *decide.Config, _ *decide.Ports) { c.MaxSeries = most },
		keyRule("user", &ruleset.Limit{Unlimited: true}, detailed))
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for v := range values {
				if _, err := b.Decide(t.Context(), newRequest("user="+strconv.Itoa(v))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	total, series := b.onlyRule().Hits.Total(), 0
	for s := range b.Series() {
		total += s.Hits.Total()
		series++
	}
	if total != callers*values || series != most {
		t.Errorf("%d hits in %d series, want %d in %d", total, series, callers*values, most)
	}
}

func unknownDomains(b *fixture) map[ratelimit.Domain]uint64 { return maps.Collect(b.UnknownDomains()) }

func TestUnknownDomainsAreCounted(t *testing.T) {
	b := newFixture(t, nil, keyRule("k", perMinute(5)))
	inDomain := func(name string, paths ...string) {
		r := newRequest(paths...)
		r.Domain = ratelimit.Domain(name)
		r.Descriptors[0].Override = &ratelimit.Limit{RequestsPerUnit: 3, Unit: ratelimit.Hour}
		b.mustDecide(t, r)
	}
	inDomain("shop", "k=v", "k=w")
	inDomain("shop", "k=v")
	b.mustDecide(t, newRequest("other=v"))
	wantEqual(t, unknownDomains(b), map[ratelimit.Domain]uint64{"shop": 3}, "got")
	inDomain(strings.Repeat("x", 1<<20), "k=v")
	for i := range 3 * decide.MaxUnknownDomains {
		inDomain(strconv.Itoa(i), "k=v")
	}
	got, others := unknownDomains(b), b.Stats().OtherDomains.Load()
	if len(got) != decide.MaxUnknownDomains || others != 1+2*decide.MaxUnknownDomains+1 {
		t.Errorf("%d domains, %d others", len(got), others)
	}
	b.clock.Advance(2 * time.Hour)
	inDomain("late", "k=v")
	if got := unknownDomains(b); got["late"] != 1 || len(got) != 1 {
		t.Errorf("two hours later: %v", got)
	}
}

func TestSharedCounter(t *testing.T) {
	shared := rule{
		Key: text("path"), Value: text("/a/*"), ShareThreshold: true, DetailedMetric: true, Limit: perMinute(2),
	}
	b := newFixture(t, nil, shared)
	checkCodes(t, b.mustDecide(t, newRequest("path=/a/1", "path=/a/2", "path=/a/3")), over, ok, ok, over)
	if got := tallyOf(b.onlyRule().Hits); got.total != 3 || b.onlyRule().Path != "path_/a/" ||
		len(seriesPaths(b)) != 0 {
		t.Errorf("%+v on %s, series %q", got, b.onlyRule().Path, seriesPaths(b))
	}
}

func TestKeysAndExpiry(t *testing.T) {
	b := newFixture(t, func(c *decide.Config, _ *decide.Ports) { c.Prefix = "p_" }, keyRule("k", perMinute(5)))
	for range 2 {
		b.mustDecide(t, newRequest("k=a", "k=b", "k=c", "k=d"))
	}
	ttls := map[time.Duration]bool{}
	for i, h := range b.store.hits {
		if !strings.HasPrefix(h.Key, "p_1:d1:k1:"+string(rune('a'+i%4))) || h.Window != time.Minute || h.Limit != 5 ||
			h.Addend != 1 {
			t.Errorf("hit %+v", h)
		}
		if h.TTL < time.Minute+ratelimit.ClockSkew || h.TTL > 6*time.Minute+ratelimit.ClockSkew ||
			h.TTL%time.Second != 0 {
			t.Errorf("lives %v", h.TTL)
		}
		if h.TTL != b.store.hits[i%4].TTL {
			t.Error("the same key lives differently long")
		}
		if end := ratelimit.WindowAt(b.clock.Now(), time.Minute).End(); h.Left != end.Sub(b.clock.Now()) {
			t.Errorf("%v are left of a window that ends at %v", h.Left, end)
		}
		ttls[h.TTL] = true
	}
	if len(ttls) < 2 {
		t.Error("all counters live equally long")
	}
}

func TestDecideAllocatesLittle(t *testing.T) {
	b := newFixture(t, func(_ *decide.Config, p *decide.Ports) { p.Counters = p.Counters.(*recorder).Store },
		keyRule("k", perMinute(5)))
	many := make([]string, 30)
	for i := range many {
		many[i] = "k=" + strconv.Itoa(i)
	}
	r := newRequest(many...)
	b.mustDecide(t, r)
	// The keys and the statuses. The race detector drops memory that is to be used again, hence the
	// margin; a single allocation for each descriptor would exceed it.
	if n := testing.AllocsPerRun(200, func() { b.mustDecide(t, r) }); n > 20 {
		t.Errorf("a decision allocates %v times", n)
	}
}

func BenchmarkDecide(bm *testing.B) {
	b := newFixture(bm, func(_ *decide.Config, p *decide.Ports) { p.Counters = p.Counters.(*recorder).Store },
		keyRule("k", perMinute(5)))
	r := newRequest("k=v", "k=w")
	bm.ReportAllocs()
	for bm.Loop() {
		b.mustDecide(bm, r)
	}
}
