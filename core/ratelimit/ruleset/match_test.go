package ruleset

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
)

// perMinute is a limit that tests tell rules apart by.
func perMinute(n uint32) *Limit {
	return &Limit{Unit: &Text{Value: "minute"}, Requests: &Requests{Count: n}}
}

func on(key, value string, limit *Limit, below ...Descriptor) Descriptor {
	return Descriptor{Key: Text{Value: key}, Value: Text{Value: value}, Limit: limit, Descriptors: below}
}

func domain(name string, list ...Descriptor) Source {
	return Source{Domain: Text{Value: name}, Descriptors: list}
}

func path(pairs ...string) []ratelimit.Entry {
	var entries []ratelimit.Entry
	for i := 0; i < len(pairs); i += 2 {
		entries = append(entries, ratelimit.Entry{Key: pairs[i], Value: pairs[i+1]})
	}
	return entries
}

func compiled(t testing.TB, sources ...Source) *Set {
	t.Helper()
	set, err := Compile(sources, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestMatch(t *testing.T) {
	set := compiled(t, domain("shop",
		on("path", "/a*", perMinute(1)),
		on("path", "*b", perMinute(2)),
		on("path", "/ab", perMinute(3)),
		on("path", "", perMinute(4)),
		on("user", "x", nil, on("op", "", perMinute(5))),
		on("user", "x*", nil, on("op", "write", perMinute(6))),
		on("user", "", perMinute(7), on("op", "", perMinute(8))),
		on("a", "b_c", perMinute(9)),
		on("open", "", nil),
		on("mid", "a*b**c", perMinute(10)),
	), domain("empty"))
	tests := map[string]struct {
		domain ratelimit.Domain
		path   []ratelimit.Entry
		want   uint32
	}{
		"exact before wildcards":              {"shop", path("path", "/ab"), 3},
		"first wildcard of the file":          {"shop", path("path", "/axb"), 1},
		"second wildcard":                     {"shop", path("path", "b"), 2},
		"star for nothing":                    {"shop", path("path", "/a"), 1},
		"key alone":                           {"shop", path("path", "/x"), 4},
		"empty value is the key alone":        {"shop", path("path", ""), 4},
		"nested":                              {"shop", path("user", "x", "op", "w"), 5},
		"nested below a wildcard":             {"shop", path("user", "xy", "op", "write"), 6},
		"siblings of the chosen one":          {"shop", path("user", "xy", "op", "read"), 0},
		"siblings of the chosen one, exact":   {"shop", path("user", "x"), 0},
		"nested below the key alone":          {"shop", path("user", "z", "op", "read"), 8},
		"limit half way does not count":       {"shop", path("user", "z", "other", "1"), 0},
		"key and value are apart":             {"shop", path("a_b", "c"), 0},
		"no limit":                            {"shop", path("open", "x"), 0},
		"too deep":                            {"shop", path("path", "/ab", "path", "/ab"), 0},
		"unknown key":                         {"shop", path("nope", "x"), 0},
		"case counts":                         {"shop", path("Path", "/ab"), 0},
		"no entries":                          {"shop", nil, 0},
		"unknown domain":                      {"none", path("path", "/ab"), 0},
		"empty domain":                        {"empty", path("path", "/ab"), 0},
		"stars in the middle":                 {"shop", path("mid", "axxbyyc"), 10},
		"stars in the middle for nothing":     {"shop", path("mid", "abc"), 10},
		"stars in the middle, a false ending": {"shop", path("mid", "abcbcac"), 10},
		"stars in the middle, no match":       {"shop", path("mid", "acb"), 0},
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
	if !set.Has("empty") || set.Has("none") {
		t.Error("Has does not know the domains")
	}
}

// landing is what is to be known of the rule that entries land on.
type landing struct {
	rule   uint32   // its limit, which tells it apart; 0 for none
	shared []string // as in ratelimit.Rule
	valued []bool
}

func landingOf(r *ratelimit.Rule) landing {
	if r == nil {
		return landing{}
	}
	return landing{r.Limit.RequestsPerUnit, r.Shared, r.Valued}
}

// slow finds the rule by trying every descriptor of the source in turn.
func slow(list []Descriptor, entries []ratelimit.Entry) landing {
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

// slowLanding says for each level of the way which pattern names the counter, and
// whether statistics name the value.
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
		d := on(key.Draw(t, "key"), value.Draw(t, "value"), nil)
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
		set, err := Compile([]Source{domain("d", list...)}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			var entries []ratelimit.Entry
			for range rapid.IntRange(0, 4).Draw(t, "depth") {
				entries = append(entries, ratelimit.Entry{
					Key:   rapid.StringMatching(`[ab]`).Draw(t, "key asked"),
					Value: rapid.StringMatching(`[ab*]{0,8}`).Draw(t, "value asked"),
				})
			}
			got, want := landingOf(set.Match("d", entries)), slow(list, entries)
			if got.rule != want.rule || !slices.Equal(got.shared, want.shared) || !slices.Equal(got.valued, want.valued) {
				t.Fatalf("%v landed on %+v, want %+v", entries, got, want)
			}
		}
	})
}

// TestWildcardsInGreatNumber overflows the memory that a reading begins with.
func TestWildcardsInGreatNumber(t *testing.T) {
	w := newWildcards()
	nodes := make([]*node, 100)
	for i := range nodes {
		nodes[i] = &node{}
		w.add(strings.Repeat("*a", len(nodes)-i)+"*b", nodes[i])
	}
	for n := range len(nodes) {
		value := strings.Repeat("a", n+1) + "b"
		if got := slices.Index(nodes, w.first(value)); got != len(nodes)-n-1 {
			t.Fatalf("%d letters: pattern %d, want %d", n+1, got, len(nodes)-n-1)
		}
	}
	if w.first(strings.Repeat("a", 200)) != nil {
		t.Error("a value without the ending matches")
	}
}

// crowded returns a set whose one key has many wildcard rules of three forms.
func crowded(t testing.TB, rules int) *Set {
	list := make([]Descriptor, rules)
	for i := range list {
		form := []string{"/tenant/%d/*", "*/suffix-%d", "/shared/*/middle-%d/*"}[i%3]
		list[i] = on("path", fmt.Sprintf(form, i), perMinute(1))
	}
	return compiled(t, domain("d", on("outer", "", nil, list...)))
}

// underCrowded returns a value for one of its rules.
func underCrowded(i int) string {
	return fmt.Sprintf([]string{"/tenant/%d/x", "/x/suffix-%d", "/shared/x/y/middle-%d/z"}[i%3], i)
}

func TestMatchAllocatesNothing(t *testing.T) {
	set := crowded(t, 10_000)
	for _, value := range []string{"/tenant/999/x", "/x/suffix-4", "/shared/x/y/middle-5/z", "/none"} {
		entries := path("outer", "o", "path", value)
		want := value != "/none"
		if got := set.Match("d", entries) != nil; got != want {
			t.Errorf("%s: matches %v, want %v", value, got, want)
		}
		if n := testing.AllocsPerRun(100, func() { set.Match("d", entries) }); n != 0 {
			t.Errorf("%s: matching allocates %v times", value, n)
		}
	}
}

// tenants returns a set whose one key has many rules for values.
func tenants(t testing.TB, rules int) *Set {
	list := make([]Descriptor, rules)
	for i := range list {
		list[i] = on("path", tenant(i), perMinute(1))
	}
	return compiled(t, domain("d", on("outer", "", nil, list...)))
}

func tenant(i int) string { return fmt.Sprintf("/tenant/%06d", i) }

// BenchmarkMatch finds rules among few and among many by turns, and tells how many
// times as long it takes among many ("x", the median of all turns). What is looked
// for is one value again and again, or "all": values of a thousand of the rules,
// or of all ten, so that what is far apart in memory has to be fetched.
func BenchmarkMatch(b *testing.B) {
	sets := []struct {
		form  string
		of    func(testing.TB, int) *Set
		value func(int) string
		most  int
		asks  []string
	}{
		{"values", tenants, tenant, 100_000, []string{"/tenant/000006", "/none/of/these"}},
		{"wildcards", crowded, underCrowded, 10_000, []string{"/tenant/6/x", "/x/suffix-4", "/shared/x/y/middle-5/z", "/none/of/these"}},
	}
	for _, s := range sets {
		few := side{set: s.of(b, 10)}
		for rules := 1_000; rules <= s.most; rules *= 10 {
			many := side{set: s.of(b, rules)}
			for _, value := range s.asks {
				few.asked = [][]ratelimit.Entry{path("outer", "o", "path", value)}
				many.asked = few.asked
				b.Run(fmt.Sprint(s.form, value, "/", rules), func(b *testing.B) { compare(b, few, many) })
			}
			few.asked, many.asked = spread(10, s.value), spread(rules, s.value)
			b.Run(fmt.Sprint(s.form, "/all/", rules), func(b *testing.B) { compare(b, few, many) })
		}
	}
}

// spread returns what asks for a thousand rules, far from each other.
func spread(rules int, value func(int) string) [][]ratelimit.Entry {
	asked := make([][]ratelimit.Entry, 1_000)
	for i := range asked {
		asked[i] = path("outer", "o", "path", value(i*7919%rules))
	}
	return asked
}

// side is a set and what is asked of it, in turn.
type side struct {
	set   *Set
	asked [][]ratelimit.Entry
}

func (s *side) turn(b *testing.B) float64 {
	const matches = 2_000
	began := b.Elapsed()
	for i := range matches {
		s.set.Match("d", s.asked[i%len(s.asked)])
	}
	return float64(b.Elapsed()-began) / matches
}

func compare(b *testing.B, few, many side) {
	var ofFew, ofMany, ratios []float64
	for b.Loop() {
		x, y := few.turn(b), many.turn(b)
		ofFew, ofMany, ratios = append(ofFew, x), append(ofMany, y), append(ratios, y/x)
	}
	for unit, list := range map[string][]float64{"ns/10-rules": ofFew, "ns/match": ofMany, "x": ratios} {
		slices.Sort(list)
		b.ReportMetric(list[len(list)/2], unit)
	}
}
