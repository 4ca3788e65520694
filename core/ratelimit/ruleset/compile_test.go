package ruleset

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/test/must"
)

// withPosition sets the position of everything that a fault can point to.
func withPosition(line int, d Descriptor) Descriptor {
	d.At = Position{File: "a.yaml", Line: line, Column: 3}
	if d.Limit != nil {
		d.Limit.At = d.At
		if d.Limit.Unit != nil {
			d.Limit.Unit.At = d.At
		}
		if d.Limit.Requests != nil {
			d.Limit.Requests.At = d.At
		}
	}
	return d
}

func TestCompileRefuses(t *testing.T) {
	yes, no := true, false
	minute := &Text{Value: "minute"}
	at := Position{File: "a.yaml", Line: 7, Column: 3}
	algorithm := func(name string) *Text { return &Text{Value: name, At: at} }
	burst := func(n uint32) *Requests { return &Requests{Count: n, At: at} }
	ten := func(change func(*Limit)) Descriptor {
		l := perMinute(10)
		change(l)
		return newDescriptor("k", "", l)
	}
	tests := map[string]struct {
		d    Descriptor
		want string
	}{
		"empty key": {newDescriptor("", "v", nil), "key must not be empty"},
		"no unit":   {newDescriptor("k", "", &Limit{Requests: &Requests{}}), "unit is missing"},
		"unknown unit": {
			newDescriptor("k", "", &Limit{Unit: &Text{Value: "fortnight"}, Requests: &Requests{}}),
			`unit "fortnight" is not one of`,
		},
		"no count": {newDescriptor("k", "", &Limit{Unit: minute}), "requests_per_unit is missing"},
		"unit with unlimited": {
			newDescriptor("k", "", &Limit{Unit: minute, Unlimited: true}), "unit must not be given together",
		},
		"count with unlimited": {
			newDescriptor("k", "", &Limit{Requests: &Requests{}, Unlimited: true}),
			"requests_per_unit must not be given together",
		},
		"unknown algorithm": {
			ten(func(l *Limit) { l.Algorithm = algorithm("leaky") }),
			`algorithm "leaky" is not one of fixed_window, sliding_window, token_bucket`,
		},
		"empty algorithm": {ten(func(l *Limit) { l.Algorithm = algorithm("") }), `algorithm "" is not one of`},
		"burst of a window": {
			ten(func(l *Limit) { l.Algorithm, l.Burst = algorithm("sliding_window"), burst(5) }),
			"burst needs the algorithm token_bucket",
		},
		"burst alone": {ten(func(l *Limit) { l.Burst = burst(5) }), "burst needs the algorithm token_bucket"},
		"no burst": {
			ten(func(l *Limit) { l.Algorithm, l.Burst = algorithm("token_bucket"), burst(0) }),
			"burst must be at least 1",
		},
		"algorithm with unlimited": {
			newDescriptor("k", "", &Limit{Algorithm: algorithm("token_bucket"), Unlimited: true}),
			"algorithm must not be given together",
		},
		"burst with unlimited": {
			newDescriptor("k", "", &Limit{Burst: burst(1), Unlimited: true}), "burst must not be given together",
		},
		"lease with unlimited": {
			newDescriptor("k", "", &Limit{Lease: algorithm("off"), Unlimited: true}),
			"lease must not be given together",
		},
		"unknown lease": {ten(func(l *Limit) { l.Lease = algorithm("on") }), `lease "on" is not one of auto, off`},
		"share without a star": {
			Descriptor{Key: Text{Value: "k"}, Value: Text{Value: "v"}, ShareThreshold: true}, "share_threshold needs",
		},
		"shadow twice, different": {
			Descriptor{Key: Text{Value: "k"}, Shadow: &yes, Limit: &Limit{Unlimited: true, Shadow: &no}},
			"shadow_mode is given twice",
		},
		"empty name in replaces": {
			newDescriptor("k", "", &Limit{
				Unlimited: true, Replaces: []Text{{At: Position{File: "a.yaml", Line: 7, Column: 3}}},
			}), "name in replaces must not be empty",
		},
		"name of other bytes": {
			newDescriptor("k", "", &Limit{
				Unlimited: true, Name: "n\xff", At: Position{File: "a.yaml", Line: 7, Column: 3},
			}), "name must be valid UTF-8",
		},
		"own name in replaces": {
			newDescriptor("k", "", &Limit{
				Unlimited: true, Name: "n", Replaces: []Text{
					{Value: "n", At: Position{File: "a.yaml", Line: 7, Column: 3}},
				},
			}), "must not name the limit itself",
		},
		"duplicate by key alone":   {newDescriptor("twice", "", nil), `duplicate descriptor "twice"`},
		"duplicate by exact value": {newDescriptor("twice", "v", nil), `duplicate descriptor "twice_v"`},
		"duplicate by wildcard":    {newDescriptor("twice", "v**", nil), `duplicate descriptor "twice_v**"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Compile([]Source{newSource("d",
				newDescriptor("twice", "", nil), newDescriptor("twice", "v", nil), newDescriptor("twice", "v*", nil),
				withPosition(7, test.d))}, Options{})
			var faults Faults
			if !errors.As(err, &faults) || len(faults) != 1 {
				t.Fatalf("got %v, want one fault", err)
			}
			if !strings.HasPrefix(err.Error(), "a.yaml:7:3: ") || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %q, want %q at a.yaml:7:3", err, test.want)
			}
		})
	}
}

func TestCompileReportsAllFaultsInOrder(t *testing.T) {
	form := Fault{At: Position{File: "a.yaml", Line: 1, Column: 1}, Rule: "unknown key"}
	_, err := Compile([]Source{
		{
			Domain: Text{Value: "b", At: Position{File: "b.yaml", Line: 1, Column: 9}}, Descriptors: []Descriptor{
				withPosition(2, newDescriptor("", "", nil)),
			},
		},
		{Domain: Text{Value: "b", At: Position{File: "c.yaml", Line: 1, Column: 9}}},
		{Domain: Text{}, At: Position{File: "d.yaml"}},
		{Domain: Text{At: Position{File: "d.yaml", Line: 2, Column: 9}}, At: Position{File: "d.yaml"}},
		{At: Position{File: "e.yaml"}, Faults: []Fault{form}},
		{At: Position{File: "f.yaml"}, Unread: true, Faults: []Fault{form}},
	}, Options{MergeName: "MERGE_DOMAIN_CONFIG"})
	want := []string{
		"a.yaml:1:1: unknown key",
		"a.yaml:1:1: unknown key",
		"a.yaml:2:3: key must not be empty",
		`c.yaml:1:9: domain "b" is in b.yaml already, and MERGE_DOMAIN_CONFIG is not true`,
		"d.yaml: domain must not be empty",
		"d.yaml:2:9: domain must not be empty",
		"e.yaml: domain must not be empty",
	}
	if err == nil || !slices.Equal(strings.Split(err.Error(), "\n"), want) {
		t.Errorf("got %v\nwant %q", err, want)
	}
}

func TestCompileMergesDomains(t *testing.T) {
	sources := []Source{
		newSource("d", newDescriptor("a", "", perMinute(1))), newSource("d", newDescriptor("b", "", perMinute(2))),
	}
	if _, err := Compile(sources, Options{}); err == nil {
		t.Error("the same domain twice is accepted without merge")
	}
	set, err := Compile(sources, Options{MergeDomains: true})
	must.Succeed(t, err)
	if set.Match("d", newEntries("a", "x")) == nil || set.Match("d", newEntries("b", "x")) == nil {
		t.Error("a merged domain lost rules")
	}
	sources = append(sources, newSource("d", newDescriptor("b", "", nil)))
	if _, err := Compile(sources, Options{MergeDomains: true}); err == nil {
		t.Error("a duplicate over two sources is accepted")
	}
}

func TestRulesSayWhatWasWritten(t *testing.T) {
	yes := true
	set := mustCompile(t, newSource("d", Descriptor{
		Key: Text{Value: "a"}, Value: Text{Value: "x*y"}, ShareThreshold: true,
		Descriptors: []Descriptor{{
			Key: Text{Value: "b"}, ValueToMetric: true,
			Descriptors: []Descriptor{{
				Key: Text{Value: "c"}, Value: Text{Value: "v"}, QuotaMode: true, Shadow: &yes,
				Limit: &Limit{
					Unit: &Text{Value: "WEEK"}, Requests: &Requests{Count: 4}, Name: "n", Replaces: []Text{
						{Value: "m"},
					},
				},
			}},
		}},
	}))
	r := set.Match("d", newEntries("a", "x1y", "b", "2", "c", "v"))
	if r == nil {
		t.Fatal("no rule")
	}
	if r.Path != "a_x.b.c_v" || r.Limit != (ratelimit.Limit{RequestsPerUnit: 4, Unit: ratelimit.Week}) ||
		!r.Quota || !r.Shadow {
		t.Errorf("got %+v", r)
	}
	if !slices.Equal(r.Shared, []string{"x*y", "", ""}) || !slices.Equal(r.ShowValue, []bool{false, true, false}) {
		t.Errorf("shared %q, valued %v", r.Shared, r.ShowValue)
	}
	if r.Name != "n" || !slices.Equal(r.Replaces, []ratelimit.Name{"m"}) {
		t.Errorf("name %q replaces %q", r.Name, r.Replaces)
	}
}

// TestNamesOfSharedPatterns: the value in a name is the part of the pattern before its first *,
// unless the series of two rules would come together.
func TestNamesOfSharedPatterns(t *testing.T) {
	shared := func(key, pattern string, below ...Descriptor) Descriptor {
		d := newDescriptor(key, pattern, perMinute(1), below...)
		d.ShareThreshold = true
		return d
	}
	tests := map[string]struct {
		sources []Source
		want    []string
	}{
		"alone":         {[]Source{newSource("d", shared("p", "api/*/read"))}, []string{"p_api/"}},
		"nothing first": {[]Source{newSource("d", shared("p", "*.png"))}, []string{"p_"}},
		"two patterns": {
			[]Source{newSource("d", shared("p", "api/*/read"), shared("p", "api/*/write"), shared("p", "web/*"))},
			[]string{"p_api/*/read", "p_api/*/write", "p_web/"},
		},
		"two sources": {
			[]Source{newSource("d", shared("p", "api/*/read")), newSource("d", shared("p", "api/*/write"))},
			[]string{"p_api/*/read", "p_api/*/write"},
		},
		"two domains": {
			[]Source{newSource("d", shared("p", "api/*/read")), newSource("e", shared("p", "api/*/write"))},
			[]string{"p_api/", "p_api/"},
		},
		"an exact value": {
			[]Source{newSource("d", shared("p", "api/*"), newDescriptor("p", "api/", perMinute(1)))},
			[]string{"p_api/*", "p_api/"},
		},
		"another key": {
			[]Source{newSource("d", shared("p", "api/*"), shared("q", "api/*"))}, []string{"p_api/", "q_api/"},
		},
		"levels below": {
			[]Source{
				newSource("d", shared("p", "a*b", newDescriptor("k", "", perMinute(1))),
					shared("p", "a*c", newDescriptor("k", "", perMinute(1), shared("l", "x*")))),
			},
			[]string{"p_a*b", "p_a*b.k", "p_a*c", "p_a*c.k", "p_a*c.k.l_x"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			set, err := Compile(test.sources, Options{MergeDomains: true})
			must.Succeed(t, err)
			var got []string
			hits := map[*ratelimit.Hits]bool{}
			for r := range set.Rules() {
				got = append(got, r.Path)
				hits[r.Hits] = true
			}
			if !slices.Equal(got, test.want) || len(hits) != len(test.want) {
				t.Errorf("names %q with %d series, want %q", got, len(hits), test.want)
			}
		})
	}
}

func TestStatisticsOutliveReloads(t *testing.T) {
	first := mustCompile(t, newSource("d", newDescriptor("a", "", perMinute(1)), newDescriptor("b", "", perMinute(1))))
	first.Match("d", newEntries("a", "x")).Hits.Refused.Add(3)
	second, err := Compile([]Source{newSource("d", newDescriptor("a", "", perMinute(9)))}, Options{Previous: first})
	must.Succeed(t, err)
	if got := second.Match("d", newEntries("a", "x")).Hits.Total(); got != 3 {
		t.Errorf("a rule that stayed has counted %d hits, want 3", got)
	}
	third := mustCompile(t, newSource("d", newDescriptor("a", "", perMinute(1))))
	if got := third.Match("d", newEntries("a", "x")).Hits.Total(); got != 0 {
		t.Errorf("a new rule has counted %d hits", got)
	}
}

func FuzzCompile(f *testing.F) {
	f.Add("k", "a*b*", "minute", "axbx", uint32(1), true)
	f.Add("", "", "", "", uint32(0), false)
	f.Add("k", "**", "Year", "\x00", uint32(1), false)
	f.Fuzz(func(t *testing.T, key, pattern, unit, value string, count uint32, share bool) {
		list := []Descriptor{
			{Key: Text{Value: key}, Value: Text{Value: pattern}, ShareThreshold: share,
				Limit: &Limit{Unit: &Text{Value: unit}, Requests: &Requests{Count: count}}},
			newDescriptor("other", value, perMinute(1)),
		}
		set, err := Compile([]Source{newSource("d", list...)}, Options{})
		if err != nil {
			if err.Error() == "" {
				t.Fatal("refused without a reason")
			}
			return
		}
		got := set.Match("d", newEntries(key, value)) != nil
		if want := slowLevel(list, ratelimit.Entry{Key: key, Value: value}) != nil; got != want {
			t.Errorf("matches %v, want %v", got, want)
		}
	})
}

// TestCompileAlgorithms: the burst of a token bucket is the limit if it is not given, and may
// exceed it.
func TestCompileAlgorithms(t *testing.T) {
	for _, test := range []struct {
		algorithm string
		requests  uint32
		burst     *Requests
		want      ratelimit.Limit
	}{
		{"fixed_window", 10, nil, ratelimit.Limit{RequestsPerUnit: 10, Unit: ratelimit.Minute}},
		{
			"sliding_window", 10, nil, ratelimit.Limit{
				RequestsPerUnit: 10, Unit: ratelimit.Minute, Algorithm: ratelimit.SlidingWindow,
			},
		},
		{
			"token_bucket", 10, nil, ratelimit.Limit{
				RequestsPerUnit: 10, Unit: ratelimit.Minute, Algorithm: ratelimit.TokenBucket, Burst: 10,
			},
		},
		{
			"token_bucket", 10, &Requests{Count: 25}, ratelimit.Limit{
				RequestsPerUnit: 10, Unit: ratelimit.Minute, Algorithm: ratelimit.TokenBucket, Burst: 25,
			},
		},
		{
			"token_bucket", 0, &Requests{Count: 0}, ratelimit.Limit{
				Unit: ratelimit.Minute, Algorithm: ratelimit.TokenBucket,
			},
		},
	} {
		l := perMinute(test.requests)
		l.Algorithm, l.Burst = &Text{Value: test.algorithm}, test.burst
		set := mustCompile(t, newSource("d", newDescriptor("k", "", l)))
		if got := set.Match("d", newEntries("k", "v")).Limit; got != test.want {
			t.Errorf("%s of %d: %+v, want %+v", test.algorithm, test.requests, got, test.want)
		}
	}
}
