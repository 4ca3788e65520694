package ruleset

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/test/must"
)

// perMinute returns a limit; tests identify a rule by its number.
func perMinute(n uint32) *Limit {
	return &Limit{Unit: &Text{Value: "minute"}, Requests: &Requests{Count: n}}
}

func newDescriptor(key, value string, limit *Limit, below ...Descriptor) Descriptor {
	return Descriptor{Key: Text{Value: key}, Value: Text{Value: value}, Limit: limit, Descriptors: below}
}

func newSource(name string, list ...Descriptor) Source {
	return Source{Domain: Text{Value: name}, Descriptors: list}
}

func newEntries(pairs ...string) []ratelimit.Entry {
	var entries []ratelimit.Entry
	for i := 0; i < len(pairs); i += 2 {
		entries = append(entries, ratelimit.Entry{Key: pairs[i], Value: pairs[i+1]})
	}
	return entries
}

func mustCompile(t testing.TB, sources ...Source) *Set {
	t.Helper()
	set, err := Compile(sources, Options{})
	must.Succeed(t, err)
	return set
}

func TestMatch(t *testing.T) {
	set := mustCompile(t, newSource("shop",
		newDescriptor("path", "/a*", perMinute(1)),
		newDescriptor("path", "*b", perMinute(2)),
		newDescriptor("path", "/ab", perMinute(3)),
		newDescriptor("path", "", perMinute(4)),
		newDescriptor("user", "x", nil, newDescriptor("op", "", perMinute(5))),
		newDescriptor("user", "x*", nil, newDescriptor("op", "write", perMinute(6))),
		newDescriptor("user", "", perMinute(7), newDescriptor("op", "", perMinute(8))),
		newDescriptor("a", "b_c", perMinute(9)),
		newDescriptor("open", "", nil),
		newDescriptor("mid", "a*b**c", perMinute(10)),
	), newSource("empty"))
	tests := map[string]struct {
		domain ratelimit.Domain
		path   []ratelimit.Entry
		want   uint32
	}{
		"exact before wildcards":              {"shop", newEntries("path", "/ab"), 3},
		"first wildcard of the file":          {"shop", newEntries("path", "/axb"), 1},
		"second wildcard":                     {"shop", newEntries("path", "b"), 2},
		"star for nothing":                    {"shop", newEntries("path", "/a"), 1},
		"key alone":                           {"shop", newEntries("path", "/x"), 4},
		"empty value is the key alone":        {"shop", newEntries("path", ""), 4},
		"nested":                              {"shop", newEntries("user", "x", "op", "w"), 5},
		"nested below a wildcard":             {"shop", newEntries("user", "xy", "op", "write"), 6},
		"siblings of the chosen one":          {"shop", newEntries("user", "xy", "op", "read"), 0},
		"siblings of the chosen one, exact":   {"shop", newEntries("user", "x"), 0},
		"nested below the key alone":          {"shop", newEntries("user", "z", "op", "read"), 8},
		"limit half way does not count":       {"shop", newEntries("user", "z", "other", "1"), 0},
		"key and value are apart":             {"shop", newEntries("a_b", "c"), 0},
		"no limit":                            {"shop", newEntries("open", "x"), 0},
		"too deep":                            {"shop", newEntries("path", "/ab", "path", "/ab"), 0},
		"unknown key":                         {"shop", newEntries("nope", "x"), 0},
		"case counts":                         {"shop", newEntries("Path", "/ab"), 0},
		"no entries":                          {"shop", nil, 0},
		"unknown domain":                      {"none", newEntries("path", "/ab"), 0},
		"empty domain":                        {"empty", newEntries("path", "/ab"), 0},
		"stars in the middle":                 {"shop", newEntries("mid", "axxbyyc"), 10},
		"stars in the middle for nothing":     {"shop", newEntries("mid", "abc"), 10},
		"stars in the middle, a false ending": {"shop", newEntries("mid", "abcbcac"), 10},
		"stars in the middle, no match":       {"shop", newEntries("mid", "acb"), 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := uint32(0)
			if r := set.Match(test.domain, test.path); r != nil {
				got = r.Limit.RequestsPerUnit
			}
			if got != test.want {
				t.Errorf("landed on rule %d, want %d", got, test.want)
			}
		})
	}
	if !set.HasDomain("empty") || set.HasDomain("none") {
		t.Error("Has does not know the domains")
	}
}

// landing is what a test compares of the matched rule.
type landing struct {
	rule   uint32   // its limit, which identifies it; 0 without a rule
	shared []string // as in ratelimit.Rule
	valued []bool
}

func landingOf(r *ratelimit.Rule) landing {
	if r == nil {
		return landing{}
	}
	return landing{r.Limit.RequestsPerUnit, r.Shared, r.ShowValue}
}

// slowMatch finds the rule by comparing every descriptor of the source in turn.
func slowMatch(list []Descriptor, entries []ratelimit.Entry) landing {
	var way []*Descriptor
	for depth := range entries {
		found := slowLevel(list, entries[depth])
		if found == nil {
			return landing{}
		}
		way = append(way, found)
		list = found.Descriptors
	}
	if len(way) == 0 || way[len(way)-1].Limit == nil {
		return landing{}
	}
	return slowLanding(way)
}

// slowLanding returns for each level of the path which pattern names the counter, and whether
// statistics contain the value.
func slowLanding(way []*Descriptor) landing {
	last := way[len(way)-1]
	found := landing{rule: last.Limit.Requests.Count}
	anyShared, anyValued := false, false
	for _, d := range way {
		shared := ""
		if d.ShareThreshold {
			shared = d.Value.Value
		}
		oneValue := d.Value.Value != "" && !strings.Contains(d.Value.Value, "*")
		valued := !d.ShareThreshold && !oneValue && (d.ValueToMetric || last.DetailedMetric)
		found.shared, found.valued = append(found.shared, shared), append(found.valued, valued)
		anyShared, anyValued = anyShared || shared != "", anyValued || valued
	}
	if !anyShared {
		found.shared = nil
	}
	if !anyValued {
		found.valued = nil
	}
	return found
}

func slowLevel(list []Descriptor, e ratelimit.Entry) *Descriptor {
	for _, matches := range []func(string) bool{
		func(value string) bool { return value != "" && !strings.Contains(value, "*") && value == e.Value },
		func(value string) bool { return strings.Contains(value, "*") && slowWildcard(value, e.Value) },
		func(value string) bool { return value == "" },
	} {
		for i := range list {
			if list[i].Key.Value == e.Key && matches(list[i].Value.Value) {
				return &list[i]
			}
		}
	}
	return nil
}

func slowWildcard(pattern, value string) bool {
	// ends holds how much of the value, in bytes, the pattern so far can cover.
	ends := map[int]bool{0: true}
	for i := range len(pattern) {
		next := map[int]bool{}
		for end := range ends {
			if pattern[i] != '*' {
				if end < len(value) && value[end] == pattern[i] {
					next[end+1] = true
				}
				continue
			}
			for further := end; further <= len(value); further++ {
				next[further] = true
			}
		}
		ends = next
	}
	return ends[len(value)]
}

// drawDescriptors draws from few letters, so that patterns overlap.
func drawDescriptors(t *rapid.T, depth int, next *uint32) []Descriptor {
	key := rapid.StringMatching(`[ab]`)
	value := rapid.StringMatching(`[ab*]{0,5}`)
	var list []Descriptor
	seen := map[[2]string]bool{}
	for range rapid.IntRange(0, 8).Draw(t, "descriptors") {
		d := newDescriptor(key.Draw(t, "key"), value.Draw(t, "value"), nil)
		id := [2]string{d.Key.Value, regexp.MustCompile(`\*+`).ReplaceAllString(d.Value.Value, "*")}
		if seen[id] {
			continue
		}
		seen[id] = true
		d.ShareThreshold = strings.Contains(d.Value.Value, "*") && rapid.Bool().Draw(t, "shared")
		d.ValueToMetric = rapid.Bool().Draw(t, "value to metric")
		d.DetailedMetric = rapid.Bool().Draw(t, "detailed")
		if rapid.Bool().Draw(t, "limited") {
			*next++
			d.Limit = perMinute(*next)
		}
		if depth > 1 {
			d.Descriptors = drawDescriptors(t, depth-1, next)
		}
		list = append(list, d)
	}
	return list
}

func TestMatchAgreesWithSlowMatcher(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		next := uint32(0)
		list := drawDescriptors(t, 3, &next)
		set, err := Compile([]Source{newSource("d", list...)}, Options{})
		must.Succeed(t, err)
		for range 20 {
			var entries []ratelimit.Entry
			for range rapid.IntRange(0, 4).Draw(t, "depth") {
				entries = append(entries, ratelimit.Entry{
					Key:   rapid.StringMatching(`[ab]`).Draw(t, "key requests"),
					Value: rapid.StringMatching(`[ab*]{0,8}`).Draw(t, "value requests"),
				})
			}
			got, want := landingOf(set.Match("d", entries)), slowMatch(list, entries)
			if got.rule != want.rule || !slices.Equal(got.shared, want.shared) ||
				!slices.Equal(got.valued, want.valued) {
				t.Fatalf("%v landed on %+v, want %+v", entries, got, want)
			}
		}
	})
}

// TestWildcardsInGreatNumber needs more states than a stateList holds without allocation.
func TestWildcardsInGreatNumber(t *testing.T) {
	w := newWildcards()
	nodes := make([]*node, 100)
	for i := range nodes {
		nodes[i] = &node{}
		w.addPattern(strings.Repeat("*a", len(nodes)-i)+"*b", nodes[i])
	}
	for n := range len(nodes) {
		value := strings.Repeat("a", n+1) + "b"
		if got := slices.Index(nodes, w.firstMatch(value)); got != len(nodes)-n-1 {
			t.Fatalf("%d letters: pattern %d, want %d", n+1, got, len(nodes)-n-1)
		}
	}
	if w.firstMatch(strings.Repeat("a", 200)) != nil {
		t.Error("a value without the ending matches")
	}
}

// manyWildcards returns a set whose one key has many wildcard rules of three forms.
func manyWildcards(t testing.TB, rules int) *Set {
	list := make([]Descriptor, rules)
	for i := range list {
		form := []string{"/tenant/%d/*", "*/suffix-%d", "/shared/*/middle-%d/*"}[i%3]
		list[i] = newDescriptor("path", fmt.Sprintf(form, i), perMinute(1))
	}
	return mustCompile(t, newSource("d", newDescriptor("outer", "", nil, list...)))
}

// wildcardValue returns a value that one of the rules of manyWildcards matches.
func wildcardValue(i int) string {
	return fmt.Sprintf([]string{"/tenant/%d/x", "/x/suffix-%d", "/shared/x/y/middle-%d/z"}[i%3], i)
}

func TestMatchAllocatesNothing(t *testing.T) {
	set := manyWildcards(t, 10_000)
	for _, value := range []string{"/tenant/999/x", "/x/suffix-4", "/shared/x/y/middle-5/z", "/none"} {
		entries := newEntries("outer", "o", "path", value)
		want := value != "/none"
		if got := set.Match("d", entries) != nil; got != want {
			t.Errorf("%s: matches %v, want %v", value, got, want)
		}
		if n := testing.AllocsPerRun(100, func() { set.Match("d", entries) }); n != 0 {
			t.Errorf("%s: matching allocates %v times", value, n)
		}
	}
}

// manyValues returns a set whose one key has many rules for values.
func manyValues(t testing.TB, rules int) *Set {
	list := make([]Descriptor, rules)
	for i := range list {
		list[i] = newDescriptor("path", exactValue(i), perMinute(1))
	}
	return mustCompile(t, newSource("d", newDescriptor("outer", "", nil, list...)))
}

func exactValue(i int) string { return fmt.Sprintf("/tenant/%06d", i) }

// BenchmarkMatch finds rules among few and among many in turn, and reports how many times as long
// it takes among many ("x", the median of all turns). It looks up one value again and again, or
// "all": values of a thousand of the rules, or of all ten, so that distant memory has to be
// fetched.
func BenchmarkMatch(b *testing.B) {
	sets := []struct {
		form   string
		of     func(testing.TB, int) *Set
		value  func(int) string
		most   int
		values []string
	}{
		{"values", manyValues, exactValue, 100_000, []string{"/tenant/000006", "/none/of/these"}},
		{
			"wildcards", manyWildcards, wildcardValue, 10_000, []string{
				"/tenant/6/x", "/x/suffix-4", "/shared/x/y/middle-5/z", "/none/of/these",
			},
		},
	}
	for _, s := range sets {
		few := benchSet{set: s.of(b, 10)}
		for rules := 1_000; rules <= s.most; rules *= 10 {
			many := benchSet{set: s.of(b, rules)}
			for _, value := range s.values {
				few.requests = [][]ratelimit.Entry{newEntries("outer", "o", "path", value)}
				many.requests = few.requests
				b.Run(fmt.Sprint(s.form, value, "/", rules), func(b *testing.B) { compareSets(b, few, many) })
			}
			few.requests, many.requests = spreadEntries(10, s.value), spreadEntries(rules, s.value)
			b.Run(fmt.Sprint(s.form, "/all/", rules), func(b *testing.B) { compareSets(b, few, many) })
		}
	}
}

// spreadEntries returns the entries of a thousand rules that are far from each other.
func spreadEntries(rules int, value func(int) string) [][]ratelimit.Entry {
	requests := make([][]ratelimit.Entry, 1_000)
	for i := range requests {
		requests[i] = newEntries("outer", "o", "path", value(i*7919%rules))
	}
	return requests
}

// benchSet is a set and the entries to match, in turn.
type benchSet struct {
	set      *Set
	requests [][]ratelimit.Entry
}

func (s *benchSet) measureTurn(b *testing.B) float64 {
	const matches = 2_000
	began := b.Elapsed()
	for i := range matches {
		s.set.Match("d", s.requests[i%len(s.requests)])
	}
	return float64(b.Elapsed()-began) / matches
}

func compareSets(b *testing.B, few, many benchSet) {
	var ofFew, ofMany, ratios []float64
	for b.Loop() {
		x, y := few.measureTurn(b), many.measureTurn(b)
		ofFew, ofMany, ratios = append(ofFew, x), append(ofMany, y), append(ratios, y/x)
	}
	for unit, list := range map[string][]float64{"ns/10-rules": ofFew, "ns/match": ofMany, "x": ratios} {
		slices.Sort(list)
		b.ReportMetric(list[len(list)/2], unit)
	}
}
