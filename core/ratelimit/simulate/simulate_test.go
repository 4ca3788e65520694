package simulate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/adapters/memory"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/decide"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
	"github.com/tollgate-dev/tollgate/core/ratelimit/simulate"
	"github.com/tollgate-dev/tollgate/test/must"
)

var start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func text(s string) ruleset.Text { return ruleset.Text{Value: s} }

// rule returns a descriptor "key" or "key=value" with a limit of some requests an hour.
func rule(path string, requests uint32, change ...func(*ruleset.Descriptor)) ruleset.Descriptor {
	key, value, _ := strings.Cut(path, "=")
	d := ruleset.Descriptor{Key: text(key), Value: text(value), Limit: &ruleset.Limit{
		Unit: &ruleset.Text{Value: "hour"}, Requests: &ruleset.Requests{Count: requests},
	}}
	for _, f := range change {
		f(&d)
	}
	return d
}

func named(name string, replaces ...string) func(*ruleset.Descriptor) {
	return func(d *ruleset.Descriptor) {
		d.Limit.Name = ratelimit.Name(name)
		for _, r := range replaces {
			d.Limit.Replaces = append(d.Limit.Replaces, text(r))
		}
	}
}

func shadow(d *ruleset.Descriptor) { on := true; d.Shadow = &on }

func unlimited(d *ruleset.Descriptor) { d.Limit = &ruleset.Limit{Unlimited: true} }

func quota(d *ruleset.Descriptor) { d.QuotaMode = true }

func compile(t rapid.TB, list ...ruleset.Descriptor) *ruleset.Set {
	set, err := ruleset.Compile([]ruleset.Source{{Domain: text("shop"), Descriptors: list}}, ruleset.Options{})
	must.Succeed(t, err)
	return set
}

// newSimulation returns a simulation with counters in the process.
func newSimulation(t rapid.TB, c decide.Config, before, after *ruleset.Set) *simulate.Simulation {
	clock, size := &simulate.Clock{}, memory.Config{MaxCounters: 100_000}
	s, err := simulate.New(c, simulate.Rules{Old: before, New: after}, simulate.Ports{
		OldCounters: memory.NewCounters(clock, size), NewCounters: memory.NewCounters(clock, size), Clock: clock,
	})
	must.Succeed(t, err)
	return s
}

// newRequest returns a request with a descriptor for each text "k=v,k=v".
func newRequest(t *testing.T, descriptors ...string) *ratelimit.Request {
	t.Helper()
	r := &ratelimit.Request{Domain: "shop"}
	for _, d := range descriptors {
		entries, err := ratelimit.ParseEntries(d)
		must.Succeed(t, err)
		r.Descriptors = append(r.Descriptors, ratelimit.Descriptor{Entries: entries})
	}
	return r
}

// run simulates requests, a second after each other, and returns the report.
func run(t *testing.T, s *simulate.Simulation, requests ...*ratelimit.Request) simulate.Report {
	t.Helper()
	for i, r := range requests {
		must.Succeed(t, s.Decide(t.Context(), start.Add(time.Duration(i)*time.Second), r))
	}
	return s.Report()
}

// describe returns a report as texts that are easy to compare.
func describe(r simulate.Report) []string {
	lines := []string{
		fmt.Sprintf("%d calls: %d %d, +%d -%d", r.Calls, r.OldRefused, r.NewRefused, r.NewlyRefused, r.NewlyAdmitted),
	}
	for _, c := range r.Rules {
		lines = append(lines,
			fmt.Sprintf("%s %s: %d: %d %d", c.Domain, strings.Join(c.Path, ","), c.Calls, c.OldRefused, c.NewRefused))
	}
	for _, u := range r.Unused {
		lines = append(lines, "unused "+strings.Join(u.Written, ","))
	}
	for _, k := range r.Keys {
		lines = append(lines, fmt.Sprintf("key %s %s: %d %d", k.Domain, k.Descriptor, k.OldRefused, k.NewRefused))
	}
	return lines
}

func TestReport(t *testing.T) {
	repeat := func(n int, descriptors ...string) (list []*ratelimit.Request) {
		for range n {
			list = append(list, newRequest(t, descriptors...))
		}
		return list
	}
	tests := map[string]struct {
		before, after []ruleset.Descriptor
		requests      []*ratelimit.Request
		want          []string
	}{
		"a lower limit": {
			[]ruleset.Descriptor{rule("user", 3)}, []ruleset.Descriptor{rule("user", 1)},
			slices.Concat(repeat(4, "user=ada"), repeat(1, "user=bob")),
			[]string{"5 calls: 1 3, +2 -0", "shop user: 5: 1 3", "key shop user=ada: 1 3"},
		},
		"a higher limit": {
			[]ruleset.Descriptor{rule("user", 1)}, []ruleset.Descriptor{rule("user", 3)}, repeat(4, "user=ada"),
			[]string{"4 calls: 3 1, +0 -2", "shop user: 4: 3 1", "key shop user=ada: 3 1"},
		},
		"the same rules": {
			[]ruleset.Descriptor{rule("user", 1)}, []ruleset.Descriptor{rule("user", 1)}, repeat(4, "user=ada"),
			[]string{"4 calls: 3 3, +0 -0", "shop user: 4: 3 3"},
		},
		"another rule decides": {
			[]ruleset.Descriptor{rule("user", 2), rule("gone", 1)}, []ruleset.Descriptor{
				rule("user=a*", 1), rule("user", 2), rule("other", 1),
			},
			repeat(3, "user=ada"),
			[]string{
				"3 calls: 1 2, +1 -0", "shop user=a*: 3: 0 2", "shop user: 3: 1 0", "shop other: 0: 0 0",
				"shop gone: 0: 0 0",
				"unused user", "unused other", "key shop user=ada: 1 2",
			},
		},
		"a replaced rule matches, and does not decide": {
			[]ruleset.Descriptor{rule("contract", 1)},
			[]ruleset.Descriptor{rule("plan", 1, named("usual")), rule("contract", 5, named("", "usual"))},
			repeat(3, "plan=free", "contract=c"),
			[]string{"3 calls: 2 0, +0 -2", "shop plan: 0: 0 0", "shop contract: 3: 2 0", "key shop contract=c: 2 0"},
		},
		"shadow mode refuses nothing": {
			[]ruleset.Descriptor{rule("user", 1)}, []ruleset.Descriptor{rule("user", 1, shadow)}, repeat(3, "user=ada"),
			[]string{"3 calls: 2 0, +0 -2", "shop user: 3: 2 0", "key shop user=ada: 2 0"},
		},
		"unlimited": {
			[]ruleset.Descriptor{rule("user", 1, unlimited)}, []ruleset.Descriptor{rule("user", 1)},
			repeat(3, "user=ada"),
			[]string{"3 calls: 0 2, +2 -0", "shop user: 3: 0 2", "key shop user=ada: 0 2"},
		},
		"a used up quota refuses a descriptor, and no request": {
			[]ruleset.Descriptor{rule("model", 9)}, []ruleset.Descriptor{
				rule("model=small", 1, quota), rule("model", 9, quota),
			},
			repeat(2, "model=small", "model=large"),
			[]string{
				"2 calls: 0 0, +0 -0", "shop model=small: 2: 0 1", "shop model: 4: 0 0", "key shop model=small: 0 1",
			},
		},
		"no rule": {nil, nil, repeat(2, "user=ada"), []string{"2 calls: 0 0, +0 -0"}},
		"no request": {
			nil, []ruleset.Descriptor{rule("user", 1)}, nil, []string{
				"0 calls: 0 0, +0 -0", "shop user: 0: 0 0", "unused user",
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newSimulation(t, decide.Config{}, compile(t, test.before...), compile(t, test.after...))
			if got := describe(run(t, s, test.requests...)); !slices.Equal(got, test.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

// TestClock: windows turn by the times of the requests.
func TestClock(t *testing.T) {
	s := newSimulation(t, decide.Config{}, compile(t, rule("user", 1)), compile(t, rule("user", 1)))
	for i := range 5 {
		must.Succeed(t, s.Decide(t.Context(), start.Add(time.Duration(i)*30*time.Minute), newRequest(t, "user=ada")))
	}
	if r := s.Report(); r.NewRefused != 2 {
		t.Errorf("%d of 5 requests in 3 hours are refused, want 2", r.NewRefused)
	}
}

// TestGlobalShadowIsNotUsed: SHADOW_MODE would hide what is compared.
func TestGlobalShadowIsNotUsed(t *testing.T) {
	s := newSimulation(t, decide.Config{Shadow: true}, compile(t), compile(t, rule("user", 0)))
	if r := run(t, s, newRequest(t, "user=ada")); r.NewlyRefused != 1 {
		t.Errorf("got %+v", r)
	}
}

func TestErrors(t *testing.T) {
	s := newSimulation(t, decide.Config{}, compile(t), compile(t))
	must.Succeed(t, s.Decide(t.Context(), start, newRequest(t, "user=ada")))
	for what, test := range map[string]struct {
		at      time.Time
		request *ratelimit.Request
	}{"time": {start.Add(-time.Nanosecond), newRequest(t, "user=ada")}, "domain": {start, &ratelimit.Request{}}} {
		err := s.Decide(t.Context(), test.at, test.request)
		if f, ok := fault.As(err); !ok || f.Kind != fault.Invalid || !strings.Contains(f.Message, what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if r := run(t, s, newRequest(t, "user=ada")); r.Calls != 2 { // at the same time as the first
		t.Errorf("%d calls, want 2", r.Calls)
	}
	for _, wrong := range []simulate.Rules{{Old: compile(t)}, {New: compile(t)}} {
		if _, err := simulate.New(decide.Config{}, wrong, simulate.Ports{Clock: &simulate.Clock{}}); err == nil {
			t.Error("a missing set of rules is no error")
		}
	}
	if _, err := simulate.New(decide.Config{}, simulate.Rules{Old: compile(t), New: compile(t)}, simulate.Ports{
		Clock: &simulate.Clock{},
	}); err == nil {
		t.Error("missing counters are no error")
	}
}

// TestMostChangedKeys: the keys with the greatest difference come first, and their number and
// length are bounded.
func TestMostChangedKeys(t *testing.T) {
	s := newSimulation(t, decide.Config{}, compile(t, rule("user", 2)), compile(t, rule("user", 1)))
	var requests []*ratelimit.Request
	for i := range 150 {
		requests = append(requests, newRequest(t, fmt.Sprintf("user=%03d", i)),
			newRequest(t, fmt.Sprintf("user=%03d", i)))
	}
	long := "user=" + strings.Repeat("ä", 1000)
	requests = append(requests, newRequest(t, long), newRequest(t, long), newRequest(t, long))
	keys := run(t, s, requests...).Keys
	if len(keys) != simulate.MaxKeys {
		t.Fatalf("%d keys", len(keys))
	}
	for i, k := range keys {
		if want := fmt.Sprintf("user=%03d", i); k.Descriptor != want || k.OldRefused != 0 || k.NewRefused != 1 {
			t.Errorf("key %d is %+v", i, k)
		}
	}
	s = newSimulation(t, decide.Config{}, compile(t), compile(t, rule("user", 0)))
	keys = run(t, s, newRequest(t, "user=ada"), newRequest(t, long), newRequest(t, long)).Keys
	if len(keys) != 2 || len(keys[0].Descriptor) > 200 || !strings.HasSuffix(keys[0].Descriptor, "ä…") ||
		keys[0].NewRefused != 2 {
		t.Errorf("got %+v", keys)
	}
}
