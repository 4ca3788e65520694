package statistics_test

import (
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/decide"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
	"github.com/tollgate-dev/tollgate/core/ratelimit/statistics"
	"github.com/tollgate-dev/tollgate/test/must"
)

// fixture has the rules and decisions that a test makes.
type fixture struct {
	*statistics.Statistics
	set     *ruleset.Set
	stats   decide.Stats
	series  []*decide.Series
	unknown map[ratelimit.Domain]uint64
}

func (b *fixture) Current() *ruleset.Set                               { return b.set }
func (b *fixture) Loaded() uint64                                      { return 2 }
func (b *fixture) Refused() uint64                                     { return 0 }
func (b *fixture) Stats() *decide.Stats                                { return &b.stats }
func (b *fixture) Series() iter.Seq[*decide.Series]                    { return slices.Values(b.series) }
func (b *fixture) UnknownDomains() iter.Seq2[ratelimit.Domain, uint64] { return maps.All(b.unknown) }

func newFixture(t testing.TB, o statistics.Options, keys ...string) *fixture {
	t.Helper()
	b := &fixture{set: compile(t, nil, keys...)}
	b.Statistics = statistics.New(b, b, o)
	return b
}

func compile(t testing.TB, before *ruleset.Set, keys ...string) *ruleset.Set {
	t.Helper()
	s := ruleset.Source{Domain: ruleset.Text{Value: "shop"}}
	for _, key := range keys {
		s.Descriptors = append(s.Descriptors, ruleset.Descriptor{
			Key: ruleset.Text{Value: key}, Limit: &ruleset.Limit{Unlimited: true},
		})
	}
	set, err := ruleset.Compile([]ruleset.Source{s}, ruleset.Options{Previous: before})
	must.Succeed(t, err)
	return set
}

// hitsOf returns the hits of a path.
func (b *fixture) hitsOf(path string) *ratelimit.Hits {
	for r := range b.set.Rules() {
		if r.Path == path {
			return r.Hits
		}
	}
	return nil
}

func counterChanges(c *statistics.Changes) map[string]uint64 {
	all := map[string]uint64{}
	for name, by := range c.Counters() {
		all[name] += by
	}
	return all
}

func checkCounters(t *testing.T, got, want map[string]uint64) {
	t.Helper()
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestNames(t *testing.T) {
	b := newFixture(t, statistics.Options{PeerNames: true}, "a:b|c\n")
	h := b.hitsOf("a:b|c\n")
	h.Refused.Add(1)
	h.Over.Add(2)
	h.Near.Add(3)
	h.Within.Add(4)
	h.Shadow.Add(5)
	h.OverLocal.Add(6)
	b.stats.StoreErrors.Add(7)
	b.stats.ServiceErrors.Add(8)
	b.stats.GlobalShadow.Add(9)
	b.stats.FailedOpen.Add(10)
	b.stats.FailedClosed.Add(11)
	b.stats.CountedLocally.Add(12)
	b.RecordCall(time.Millisecond)
	checkCounters(t, counterChanges(b.NewChanges()), map[string]uint64{
		"ratelimit.service.rate_limit.shop.a_b_c_.total_hits":                  5,
		"ratelimit.service.rate_limit.shop.a_b_c_.over_limit":                  2,
		"ratelimit.service.rate_limit.shop.a_b_c_.near_limit":                  3,
		"ratelimit.service.rate_limit.shop.a_b_c_.within_limit":                4,
		"ratelimit.service.rate_limit.shop.a_b_c_.shadow_mode":                 5,
		"ratelimit.service.rate_limit.shop.a_b_c_.over_limit_with_local_cache": 6,
		"ratelimit.service.call.should_rate_limit.redis_error":                 7,
		"ratelimit.service.call.should_rate_limit.service_error":               8,
		"ratelimit.service.global_shadow_mode":                                 9,
		"ratelimit.service.store_fallback.failed_open":                         10,
		"ratelimit.service.store_fallback.failed_closed":                       11,
		"ratelimit.service.store_fallback.counted_locally":                     12,
		"ratelimit.service.config_load_success":                                2,
		"ratelimit_server.ShouldRateLimit.total_requests":                      1,
	})
}

func TestUnknownDomains(t *testing.T) {
	b := newFixture(t, statistics.Options{})
	b.unknown = map[ratelimit.Domain]uint64{"shopp": 3, "a:b": 1, "a_b": 2, "10.0.0.1": 4}
	b.stats.OtherDomains.Add(5)
	c := b.NewChanges()
	checkCounters(t, counterChanges(c), map[string]uint64{
		"ratelimit.service.config_load_success":                  2,
		"ratelimit.service.rate_limit.shopp.domain_not_found":    3,
		"ratelimit.service.rate_limit.a_b.domain_not_found":      3,
		"ratelimit.service.rate_limit.10_0_0_1.domain_not_found": 4,
		"ratelimit.service.rate_limit._other.domain_not_found":   5,
	})
	b.unknown["shopp"] = 4
	checkCounters(t, counterChanges(c), map[string]uint64{"ratelimit.service.rate_limit.shopp.domain_not_found": 1})
	for one := range newFixture(t, statistics.Options{WithoutRules: true}).NewChanges().Counters() {
		if strings.Contains(one, "domain_not_found") {
			t.Errorf("%s is listed without the statistics of rules", one)
		}
	}
}

// TestChangesThatWereNotTaken: what a sink did not take comes again, once.
func TestChangesThatWereNotTaken(t *testing.T) {
	b := newFixture(t, statistics.Options{})
	b.stats.GlobalShadow.Add(1)
	b.unknown = map[ratelimit.Domain]uint64{"shopp": 3}
	c := b.NewChanges()
	total := map[string]uint64{}
	for range 5 {
		for name, by := range c.Counters() {
			if _, refused := total[name]; !refused {
				total[name] = 0 // each is refused the first time
				break
			}
			total[name] += by
		}
	}
	checkCounters(t, total, map[string]uint64{
		"ratelimit.service.config_load_success":               2,
		"ratelimit.service.global_shadow_mode":                1,
		"ratelimit.service.rate_limit.shopp.domain_not_found": 3,
	})
}

// TestFailedCallsAddUp: the kinds of failures of one metric add up to the calls that failed,
// whatever the name of the first kind.
func TestFailedCallsAddUp(t *testing.T) {
	for name, peer := range map[string]bool{"store_error": false, "redis_error": true} {
		b := newFixture(t, statistics.Options{PeerNames: peer})
		b.stats.StoreErrors.Add(3)
		b.stats.ServiceErrors.Add(2)
		b.stats.FailedOpen.Add(1)
		sum, kinds := uint64(0), map[string]uint64{}
		for _, c := range b.Service() {
			if c.Metric == "ratelimit_service_should_rate_limit_error" {
				sum += c.Value
				kinds[c.LabelValue] = c.Value
			}
			if strings.HasPrefix(c.Name, "ratelimit.service.call.should_rate_limit.") != (c.Label == "err_type") {
				t.Errorf("%s is %s in Prometheus: mappers of the Envoy service take it for a failed call",
					c.Name, c.Metric)
			}
		}
		if sum != 5 || kinds[name] != 3 || len(kinds) != 2 {
			t.Errorf("kinds %v, want 5 failed calls, 3 of them %s", kinds, name)
		}
	}
}

// TestAddressesInNames: dots begin levels, so those of addresses become underscores.
func TestAddressesInNames(t *testing.T) {
	tests := map[string]string{
		"ip_10.0.0.1":               "ip_10_0_0_1",
		"net_192.168.7.0/24":        "net_192_168_7_0/24",
		"a_1.2.3.4_b_255.0.0.255":   "a_1_2_3_4_b_255_0_0_255",
		"v_1.2.3":                   "v_1.2.3",
		"v_1.2.3.x":                 "v_1.2.3.x",
		"v_1234.5.6.7890":           "v_1234_5_6_7890",
		"v_1.2.3.4.5.6.7.8.9":       "v_1_2_3_4.5_6_7_8.9",
		"ip_2001:db8::1|x":          "ip_2001_db8__1_x",
		"ip_::ffff:10.0.0.1":        "ip___ffff_10_0_0_1",
		"ip_10.0.0.1.path_/a.b":     "ip_10_0_0_1.path_/a.b",
		"ip_10.0.0":                 "ip_10.0.0",
		"ip_10..0.0.1":              "ip_10..0.0.1",
		"1.1.1.1":                   "1_1_1_1",
		"path_/static/app.1.2.3.js": "path_/static/app.1.2.3.js",
	}
	for path, name := range tests {
		b := newFixture(t, statistics.Options{}, path)
		b.hitsOf(path).Refused.Add(1)
		c := b.NewChanges()
		got := counterChanges(c)
		delete(got, "ratelimit.service.config_load_success")
		checkCounters(t, got, map[string]uint64{"ratelimit.service.rate_limit.shop." + name + ".total_hits": 1})
		if totals := b.Totals(); len(totals) != 1 || totals[0].Rule != name || totals[0].Key1 != name {
			t.Errorf("%s: totals are %+v", path, totals)
		}
	}
}

// TestAddressesAsThePeer compares with the expression that the Envoy service cleans its names by.
func TestAddressesAsThePeer(t *testing.T) {
	address := regexp.MustCompile(`\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}`)
	rapid.Check(t, func(rt *rapid.T) {
		path := rapid.StringMatching(`[a0-9.:|]{1,24}`).Draw(rt, "path")
		b := newFixture(t, statistics.Options{}, path)
		want := address.ReplaceAllStringFunc(strings.NewReplacer(":", "_", "|", "_").Replace(path),
			func(found string) string {
				return strings.ReplaceAll(found, ".", "_")
			})
		if got := b.Totals()[0].Rule; got != want {
			rt.Fatalf("%q is named %q, want %q", path, got, want)
		}
	})
}

func TestWithoutRules(t *testing.T) {
	b := newFixture(t, statistics.Options{WithoutRules: true}, "k")
	b.hitsOf("k").Refused.Add(1)
	checkCounters(t, counterChanges(b.NewChanges()), map[string]uint64{"ratelimit.service.config_load_success": 2})
	if n := len(b.Totals()); n != 0 {
		t.Errorf("%d totals", n)
	}
}

func TestChangesAreDifferences(t *testing.T) {
	b := newFixture(t, statistics.Options{}, "k", "never")
	c := b.NewChanges()
	counterChanges(c)
	checkCounters(t, counterChanges(c), map[string]uint64{})
	b.hitsOf("k").Refused.Add(3)
	checkCounters(t, counterChanges(c), map[string]uint64{"ratelimit.service.rate_limit.shop.k.total_hits": 3})
	b.hitsOf("k").Refused.Add(2)
	for range c.Counters() {
		break // the sink failed: the changes come again
	}
	checkCounters(t, counterChanges(c), map[string]uint64{"ratelimit.service.rate_limit.shop.k.total_hits": 2})
}

// TestLastChangesOfGoneSubjects: the changes of a rule or a series that was removed are reported
// once more.
func TestLastChangesOfGoneSubjects(t *testing.T) {
	b := newFixture(t, statistics.Options{}, "k", "other")
	b.series = []*decide.Series{{Domain: "shop", Path: "k_v", Hits: &ratelimit.Hits{}}}
	c := b.NewChanges()
	b.hitsOf("k").Refused.Add(1)
	b.series[0].Hits.Refused.Add(1)
	counterChanges(c)
	b.hitsOf("k").Refused.Add(4)
	b.series[0].Hits.Refused.Add(5)
	b.series = nil
	b.set = compile(t, b.set, "other")
	checkCounters(t, counterChanges(c), map[string]uint64{
		"ratelimit.service.rate_limit.shop.k.total_hits":   4,
		"ratelimit.service.rate_limit.shop.k_v.total_hits": 5,
	})
	checkCounters(t, counterChanges(c), map[string]uint64{})
}

// TestChangesAddUp: the differences add up to what was counted, whenever they are read and wherever
// the reading stops.
func TestChangesAddUp(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := newFixture(t, statistics.Options{}, "a", "b", "c")
		c := b.NewChanges()
		counted, reported := map[string]uint64{}, map[string]uint64{}
		for range rapid.IntRange(1, 20).Draw(rt, "steps") {
			path := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "path")
			by := rapid.Uint64Range(1, 9).Draw(rt, "by")
			b.hitsOf(path).Near.Add(by)
			counted["ratelimit.service.rate_limit.shop."+path+".near_limit"] += by
			left := rapid.IntRange(0, 5).Draw(rt, "taken")
			for name, by := range c.Counters() {
				if left == 0 {
					break
				}
				left--
				reported[name] += by
			}
		}
		for name, by := range counterChanges(c) {
			reported[name] += by
		}
		delete(reported, "ratelimit.service.config_load_success")
		if !maps.Equal(counted, reported) {
			rt.Fatalf("counted %v, reported %v", counted, reported)
		}
	})
}

// TestTotalsOfOneNameAreAdded: all counts with one name are one total, also where texts are not
// valid UTF-8.
func TestTotalsOfOneNameAreAdded(t *testing.T) {
	b := newFixture(t, statistics.Options{}, "k")
	series := func(path string, levels ...string) *decide.Series {
		s := &decide.Series{Domain: "shop", Path: path, Levels: levels, Hits: &ratelimit.Hits{}}
		s.Hits.Refused.Add(2)
		return s
	}
	b.hitsOf("k").Refused.Add(1)
	b.series = []*decide.Series{
		series("k", "k"), series("a_\xff.b.c", "a_\xff", "b", "c"), series("a_\xfe.b.c", "a_\xfe", "b", "c"),
	}
	got := b.Totals()
	slices.SortFunc(got, func(x, y statistics.Total) int { return len(x.Rule) - len(y.Rule) })
	if len(got) != 2 {
		t.Fatalf("totals are %+v", got)
	}
	if got[0].Key1 != "k" || got[0].Key2 != "" || got[0].Values[statistics.TotalHits] != 3 {
		t.Errorf("got %+v", got[0])
	}
	if got[1].Key1 != "a_\uFFFD" || got[1].Key2 != "b" || got[1].Values[statistics.TotalHits] != 4 {
		t.Errorf("got %+v", got[1])
	}
}

// TestRulesThatWereNeverHit are listed while there are few rules.
func TestRulesThatWereNeverHit(t *testing.T) {
	for _, test := range []struct{ rules, want int }{{10_000, 10_000}, {10_001, 1}} {
		keys := make([]string, test.rules)
		for i := range keys {
			keys[i] = fmt.Sprint("key", i)
		}
		b := newFixture(t, statistics.Options{}, keys...)
		b.hitsOf("key7").Refused.Add(1)
		if got := len(b.Totals()); got != test.want {
			t.Errorf("%d totals of %d rules, want %d", got, test.rules, test.want)
		}
	}
}

func TestTimesAreASample(t *testing.T) {
	b := newFixture(t, statistics.Options{})
	c := b.NewChanges()
	for i := range 100 {
		b.RecordCall(time.Duration(i+1) * time.Microsecond)
	}
	sample, rate := c.Times()
	if len(sample) != 100 || rate != 1 || slices.Max(sample) != 100*time.Microsecond {
		t.Errorf("%d of 100 calls at a rate of %v", len(sample), rate)
	}
	if sample, _ = c.Times(); len(sample) != 0 {
		t.Errorf("%d of no calls", len(sample))
	}
	for range 2 { // at the second time, the pace is known
		for i := range 10_000 {
			b.RecordCall(time.Duration(i + 1))
		}
		sample, rate = c.Times()
	}
	if n := float64(len(sample)); n < 400 || rate < n/10_000*.99 || rate > n/10_000*1.01 {
		t.Errorf("%v of 10,000 calls at a rate of %v", n, rate)
	}
	if low := slices.Min(sample); low > 200 {
		t.Errorf("the sample begins with the %dth call", low)
	}
}

func BenchmarkReading(bm *testing.B) {
	keys := make([]string, 100_000)
	for i := range keys {
		keys[i] = fmt.Sprint("key", i)
	}
	b := newFixture(bm, statistics.Options{}, keys...)
	bm.Run("changes, one rule hit", func(bm *testing.B) {
		c := b.NewChanges()
		hits := b.hitsOf("key7")
		bm.ReportAllocs()
		for bm.Loop() {
			hits.Refused.Add(1)
			for range c.Counters() {
			}
		}
	})
	bm.Run("totals", func(bm *testing.B) {
		bm.ReportAllocs()
		for bm.Loop() {
			b.Totals()
		}
	})
	for r := range b.set.Rules() {
		r.Hits.Refused.Add(1)
	}
	bm.Run("changes, all rules hit", func(bm *testing.B) {
		c := b.NewChanges()
		bm.ReportAllocs()
		for bm.Loop() {
			for r := range b.set.Rules() {
				r.Hits.Refused.Add(1)
			}
			for range c.Counters() {
			}
		}
	})
}
