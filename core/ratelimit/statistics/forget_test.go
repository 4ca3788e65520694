package statistics

import (
	"iter"
	"maps"
	"testing"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/decide"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
)

// oneSubject has at most one series.
type oneSubject struct {
	stats   decide.Stats
	series  *decide.Series
	unknown map[ratelimit.Domain]uint64
}

func (*oneSubject) Current() *ruleset.Set  { return nil }
func (*oneSubject) Loaded() uint64         { return 0 }
func (*oneSubject) Refused() uint64        { return 0 }
func (o *oneSubject) Stats() *decide.Stats { return &o.stats }
func (o *oneSubject) Series() iter.Seq[*decide.Series] {
	return func(yield func(*decide.Series) bool) {
		if o.series != nil {
			yield(o.series)
		}
	}
}

func (o *oneSubject) UnknownDomains() iter.Seq2[ratelimit.Domain, uint64] { return maps.All(o.unknown) }

// TestGoneSubjectsTakeNoMemory: series come and go for as long as the service runs.
func TestGoneSubjectsTakeNoMemory(t *testing.T) {
	o := &oneSubject{}
	c := New(o, o, Options{}).NewChanges()
	for _, want := range []int{1, 0} {
		o.series = nil
		if want == 1 {
			o.series = &decide.Series{Domain: "shop", Path: "k_v", Hits: &ratelimit.Hits{}}
			o.series.Hits.Refused.Add(1)
		}
		for range c.Counters() {
		}
		if len(c.hits) != want {
			t.Errorf("%d subjects are kept, want %d", len(c.hits), want)
		}
	}
}

// TestGoneDomainsTakeNoMemory: callers choose the names of unknown domains, and old names are
// removed.
func TestGoneDomainsTakeNoMemory(t *testing.T) {
	o := &oneSubject{}
	c := New(o, o, Options{}).NewChanges()
	for _, name := range []ratelimit.Domain{"a", "b", "c"} {
		o.unknown = map[ratelimit.Domain]uint64{name: 2}
		reported := map[string]uint64{}
		for name, by := range c.Counters() {
			reported[name] += by
		}
		if want := rulePrefix + string(name) + ".domain_not_found"; len(reported) != 1 || reported[want] != 2 {
			t.Errorf("reported %v, want %s", reported, want)
		}
	}
	if _, kept := c.service[rulePrefix+"a.domain_not_found"]; kept {
		t.Error("a domain that is gone is kept")
	}
}
