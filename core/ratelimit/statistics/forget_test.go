package statistics

import (
	"iter"
	"maps"
	"testing"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/decide"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
)

// one has a series or none.
type one struct {
	stats   decide.Stats
	series  *decide.Series
	unknown map[ratelimit.Domain]uint64
}

func (*one) Current() *ruleset.Set  { return nil }
func (*one) Loaded() uint64         { return 0 }
func (*one) Refused() uint64        { return 0 }
func (o *one) Stats() *decide.Stats { return &o.stats }
func (o *one) Series() iter.Seq[*decide.Series] {
	return func(yield func(*decide.Series) bool) {
		if o.series != nil {
			yield(o.series)
		}
	}
}

func (o *one) UnknownDomains() iter.Seq2[ratelimit.Domain, uint64] { return maps.All(o.unknown) }

// TestGoneSubjectsTakeNoMemory: series come and go for as long as the service
// runs.
func TestGoneSubjectsTakeNoMemory(t *testing.T) {
	o := &one{}
	c := New(o, o, Options{}).NewChanges()
	for _, want := range []int{1, 0} {
		o.series = nil
		if want == 1 {
			o.series = &decide.Series{Domain: "shop", Path: "k_v", Hits: &ratelimit.Hits{}}
			o.series.Hits.Total.Add(1)
		}
		for range c.Counters() {
		}
		if len(c.hits) != want {
			t.Errorf("%d subjects are kept, want %d", len(c.hits), want)
		}
	}
}

// TestGoneDomainsTakeNoMemory: names of unknown domains are the callers' own, and make room for others.
func TestGoneDomainsTakeNoMemory(t *testing.T) {
	o := &one{}
	c := New(o, o, Options{}).NewChanges()
	for _, name := range []ratelimit.Domain{"a", "b", "c"} {
		o.unknown = map[ratelimit.Domain]uint64{name: 2}
		told := map[string]uint64{}
		for name, by := range c.Counters() {
			told[name] += by
		}
		if want := rulePrefix + string(name) + ".domain_not_found"; len(told) != 1 || told[want] != 2 {
			t.Errorf("told %v, want %s", told, want)
		}
	}
	if _, kept := c.service[rulePrefix+"a.domain_not_found"]; kept {
		t.Error("a domain that is gone is kept")
	}
}
