package reload

import (
	"context"
	"testing"

	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
	"github.com/tollgate-dev/tollgate/test/must"
)

type reports struct {
	loaded  [][2]int
	refused []error
}

func (r *reports) Report(event any) {
	switch e := event.(type) {
	case InForce:
		r.loaded = append(r.loaded, [2]int{e.Domains, e.Rules})
	case Rejected:
		r.refused = append(r.refused, e.Err)
	}
}

// scriptedSource is a rule source that delivers one configuration after another.
type scriptedSource [][]ruleset.Source

func (s scriptedSource) Load(context.Context) ([]ruleset.Source, error) { return s[0], nil }

func (scriptedSource) Expected() bool { return true }

func (s scriptedSource) Watch(_ context.Context, apply func([]ruleset.Source) error) error {
	for _, sources := range s {
		_ = apply(sources) // a refused one does not end the watch
	}
	return nil
}

func newSource(domain string) ruleset.Source {
	return ruleset.Source{Domain: ruleset.Text{Value: domain}, Descriptors: []ruleset.Descriptor{
		{Key: ruleset.Text{Value: "k"}, Limit: &ruleset.Limit{Unlimited: true}},
	}}
}

func TestWrongConfigurationKeepsTheOneBefore(t *testing.T) {
	var reported reports
	r := New(ruleset.Options{}, &reported)
	if r.Current() != nil {
		t.Fatal("rules are in force before any were loaded")
	}
	err := r.Follow(t.Context(), scriptedSource{{newSource("")}, {newSource("a")}, {newSource("b"), newSource("b")}})
	must.Succeed(t, err)
	if set := r.Current(); set == nil || !set.HasDomain("a") {
		t.Error("the good configuration is not in force")
	}
	if r.Loaded() != 1 || r.Refused() != 2 {
		t.Errorf("loaded %d, refused %d; want 1, 2", r.Loaded(), r.Refused())
	}
	if len(reported.loaded) != 1 || reported.loaded[0] != [2]int{1, 1} || len(reported.refused) != 2 {
		t.Errorf("reported %v and %v", reported.loaded, reported.refused)
	}
}

func TestEmptyConfigurationIsOne(t *testing.T) {
	r := New(ruleset.Options{}, &reports{})
	must.Succeed(t, r.Apply(nil))
	if r.Current() == nil {
		t.Error("an empty configuration is not in force")
	}
}

func TestStatisticsAreHandedOn(t *testing.T) {
	r := New(ruleset.Options{}, &reports{})
	for range 2 {
		must.Succeed(t, r.Apply([]ruleset.Source{newSource("a")}))
		for rule := range r.Current().Rules() {
			rule.Hits.Refused.Add(1)
		}
	}
	for rule := range r.Current().Rules() {
		if got := rule.Hits.Total(); got != 2 {
			t.Errorf("%d hits, want 2", got)
		}
	}
}
