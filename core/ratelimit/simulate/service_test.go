package simulate_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/adapters/memory"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/decide"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
	"github.com/tollgate-dev/tollgate/core/ratelimit/simulate"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/test/must"
)

// drawDescriptor draws a rule of any kind.
func drawDescriptor(t *rapid.T, key, value string, depth int) ruleset.Descriptor {
	d := ruleset.Descriptor{Key: text(key), Value: text(value)}
	limit := &ruleset.Limit{
		Unit:     &ruleset.Text{Value: rapid.SampledFrom([]string{"second", "minute", "hour"}).Draw(t, "unit")},
		Requests: &ruleset.Requests{Count: rapid.Uint32Range(0, 4).Draw(t, "requests")},
		Name:     ratelimit.Name(rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "name")),
	}
	switch algorithm := rapid.SampledFrom([]string{"", "sliding_window", "token_bucket", "unlimited", "none"}).Draw(t,
		"algorithm"); algorithm {
	case "unlimited":
		limit = &ruleset.Limit{Unlimited: true, Name: limit.Name}
	case "none":
		limit = nil
	case "token_bucket":
		limit.Burst = &ruleset.Requests{Count: rapid.Uint32Range(1, 6).Draw(t, "burst")}
		fallthrough
	case "sliding_window":
		limit.Algorithm = &ruleset.Text{Value: algorithm}
	}
	if d.Limit = limit; limit != nil {
		if other := rapid.SampledFrom([]string{"", "", "a", "b"}).Draw(t, "replaces"); other != "" &&
			other != string(limit.Name) {
			limit.Replaces = []ruleset.Text{text(other)}
		}
		if rapid.Bool().Draw(t, "shadow") && rapid.Bool().Draw(t, "really") {
			shadow(&d)
		}
		d.QuotaMode = rapid.IntRange(0, 5).Draw(t, "quota") == 0
		d.ShareThreshold = value == "a*" && rapid.Bool().Draw(t, "share")
	}
	if depth > 0 {
		d.Descriptors = drawLevel(t, depth-1)
	}
	return d
}

// drawLevel draws the rules of a level.
func drawLevel(t *rapid.T, depth int) (list []ruleset.Descriptor) {
	for _, path := range [][2]string{{"x", ""}, {"x", "a"}, {"x", "a*"}, {"y", ""}, {"y", "b"}} {
		if rapid.IntRange(0, 2).Draw(t, "rule") > 0 {
			list = append(list, drawDescriptor(t, path[0], path[1], depth))
		}
	}
	return list
}

// drawRequest draws a request, often in the domain of the rules.
func drawRequest(t *rapid.T) *ratelimit.Request {
	r := &ratelimit.Request{
		Domain: ratelimit.Domain(rapid.SampledFrom([]string{"shop", "shop", "shop", "unknown"}).Draw(t, "domain")),
		Hits:   rapid.Uint32Range(0, 2).Draw(t, "hits"),
	}
	for range rapid.IntRange(1, 3).Draw(t, "descriptors") {
		var d ratelimit.Descriptor
		for range rapid.IntRange(1, 2).Draw(t, "entries") {
			d.Entries = append(d.Entries, ratelimit.Entry{
				Key:   rapid.SampledFrom([]string{"x", "y"}).Draw(t, "key"),
				Value: rapid.SampledFrom([]string{"a", "ab", "b"}).Draw(t, "value"),
			})
		}
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0:
			hits := rapid.Uint64Range(0, 3).Draw(t, "own hits")
			d.Hits = &hits
		case 1:
			d.GiveBack = true
		case 2:
			d.Override = &ratelimit.Limit{
				RequestsPerUnit: rapid.Uint32Range(0, 3).Draw(t, "override"), Unit: ratelimit.Minute,
			}
		}
		r.Descriptors = append(r.Descriptors, d)
	}
	return r
}

// service is a rate limit service with a clock of its own, and what it has answered.
type service struct {
	*decide.Decider
	clock *clocktest.Manual
	set   *ruleset.Set
}

func newService(t *rapid.T, c decide.Config, set *ruleset.Set) service {
	clock := clocktest.NewManual(start)
	c.JitterMax, c.MaxSeries, c.NearLimitRatio = 300*time.Second, 100, 0.8
	d, err := decide.New(c, decide.Ports{
		Rules:    func() *ruleset.Set { return set },
		Counters: memory.NewCounters(clock, memory.Config{MaxCounters: 1000}), Clock: clock,
	})
	must.Succeed(t, err)
	return service{d, clock, set}
}

func (s service) decide(t *rapid.T, r *ratelimit.Request) ratelimit.Decision {
	d, err := s.Decide(context.Background(), r)
	must.Succeed(t, err)
	return d
}

// refusals are what services refused: requests, and descriptors by rule and key.
type refusals struct {
	before, after, newly, admitted uint64
	byRule, byKey                  map[string]*[2]uint64
}

// count counts the refused descriptors of a decision of the service with the index.
func (f *refusals) count(s service, r *ratelimit.Request, d ratelimit.Decision, index int) {
	for i, status := range d.Statuses {
		if status.Code != ratelimit.OverLimit {
			continue
		}
		increment(f.byKey, string(r.Domain)+" "+ratelimit.FormatEntries(r.Descriptors[i].Entries), index)
		if r.Descriptors[i].Override == nil {
			rule := s.set.Match(r.Domain, r.Descriptors[i].Entries)
			increment(f.byRule, fmt.Sprint(rule.Written), index)
		}
	}
}

func increment(all map[string]*[2]uint64, name string, index int) {
	if all[name] == nil {
		all[name] = &[2]uint64{}
	}
	all[name][index]++
}

// TestEqualsServices: a simulation refuses what services with the same rules refuse when they get
// the same requests at the same times.
func TestEqualsServices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := decide.Config{
			StopWhenOver: rapid.Bool().Draw(t, "stop when over"),
			Quota:        rapid.IntRange(0, 9).Draw(t, "quota mode") == 0,
		}
		before, after := newService(t, c, compile(t, drawLevel(t, 1)...)),
			newService(t, c, compile(t, drawLevel(t, 1)...))
		s := newSimulation(t, c, before.set, after.set)
		want, now := refusals{byRule: map[string]*[2]uint64{}, byKey: map[string]*[2]uint64{}}, start
		calls := rapid.IntRange(0, 60).Draw(t, "calls")
		for range calls {
			wait := time.Duration(rapid.SampledFrom([]int{0, 0, 1, 150, 900, 20_000, 1_000_000}).Draw(t,
				"wait")) * time.Millisecond
			now = now.Add(wait)
			before.clock.Advance(wait)
			after.clock.Advance(wait)
			r := drawRequest(t)
			was, is := before.decide(t, r), after.decide(t, r)
			must.Succeed(t, s.Decide(context.Background(), now, r))
			want.before += refused(was)
			want.after += refused(is)
			want.newly += refused(is) &^ refused(was)
			want.admitted += refused(was) &^ refused(is)
			want.count(before, r, was, 0)
			want.count(after, r, is, 1)
		}
		checkReport(t, s.Report(), &want, calls)
	})
}

func refused(d ratelimit.Decision) uint64 {
	if d.Code == ratelimit.OverLimit {
		return 1
	}
	return 0
}

func checkReport(t *rapid.T, r simulate.Report, want *refusals, calls int) {
	if got := []uint64{r.Calls, r.OldRefused, r.NewRefused, r.NewlyRefused, r.NewlyAdmitted}; !slices.Equal(got,
		[]uint64{uint64(calls), want.before, want.after, want.newly, want.admitted}) { //nolint:gosec // a small number
		t.Fatalf("got %v, want %+v", got, want)
	}
	byRule, byKey := map[string]*[2]uint64{}, map[string]*[2]uint64{}
	for _, c := range r.Rules {
		if c.OldRefused+c.NewRefused > 0 {
			byRule[fmt.Sprint(c.Path)] = &[2]uint64{c.OldRefused, c.NewRefused}
		}
		if c.Calls < c.OldRefused || c.Calls < c.NewRefused {
			t.Fatalf("%v decided %d descriptors and refused %d and %d", c.Path, c.Calls, c.OldRefused, c.NewRefused)
		}
	}
	for _, k := range r.Keys {
		byKey[string(k.Domain)+" "+k.Descriptor] = &[2]uint64{k.OldRefused, k.NewRefused}
	}
	maps.DeleteFunc(want.byKey, func(_ string, n *[2]uint64) bool { return n[0] == n[1] })
	for what, pair := range map[string][2]map[string]*[2]uint64{
		"rules": {byRule, want.byRule}, "keys": {byKey, want.byKey},
	} {
		if !maps.EqualFunc(pair[0], pair[1], func(a, b *[2]uint64) bool { return *a == *b }) {
			t.Fatalf("%s: got %s, want %s", what, formatCounts(pair[0]), formatCounts(pair[1]))
		}
	}
}

func formatCounts(counts map[string]*[2]uint64) (all string) {
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		all += name + ": " + strconv.FormatUint(counts[name][0], 10) + " " +
			strconv.FormatUint(counts[name][1], 10) + "; "
	}
	return all
}
