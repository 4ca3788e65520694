package toolserver

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/test/must"
)

func TestPatternCoversAndOverlaps(t *testing.T) {
	t.Parallel()
	const (
		covers = iota
		covered
		both
		apart
	)
	for _, test := range []struct {
		p, q string
		want int
	}{
		{"*", "*", both},
		{"*", "a/b", covers},
		{"*", "com.example/*", covers},
		{"com.example/*", "com.example/*", both},
		{"com.example/*", "com.example/tools", covers},
		{"com.example/*", "com.example/tools*", covers},
		{"com.example/tools*", "com.example/tools", covers},
		{"com.example*", "com.example/*", covers},
		{"com.example*", "com.example.*", covers},
		{"com.example*", "com.examples/x", covers},
		{"com.example/tools", "com.example/tools", both},
		{"com.example/tools", "com.example/tools*", covered},
		{"com.example/tools", "com.example/tool", apart},
		{"com.example/tools", "com.example/toolsets", apart},
		{"com.example/*", "com.example.*", apart},
		{"com.example/*", "com.examples/*", apart},
		{"com.example/*", "Com.example/x", apart},
	} {
		p, q := Pattern{test.p}, Pattern{test.q}
		if got := p.Covers(q); got != (test.want == covers || test.want == both) {
			t.Errorf("%s covers %s: %t", p, q, got)
		}
		if got := q.Covers(p); got != (test.want == covered || test.want == both) {
			t.Errorf("%s covers %s: %t", q, p, got)
		}
		if got := p.Overlaps(q); got != (test.want != apart) || got != q.Overlaps(p) {
			t.Errorf("%s overlaps %s: %t, and the reverse: %t", p, q, got, q.Overlaps(p))
		}
	}
	for _, q := range []string{"*", "a/*", "a/b", ""} {
		if zero := (Pattern{}); zero.Covers(Pattern{q}) || (Pattern{q}).Covers(zero) || zero.Overlaps(Pattern{q}) {
			t.Errorf("the zero pattern is covered by %q, covers or overlaps it", q)
		}
	}
}

// TestPatternRelationsAgreeWithNames compares Covers and Overlaps with what the patterns select.
func TestPatternRelationsAgreeWithNames(t *testing.T) {
	t.Parallel()
	names := shortNames()
	pattern := rapid.StringMatching(`\*|[ab][ab.]{0,2}\*|[ab][ab.]{0,2}/[ab]{0,2}\*|[ab][ab.]{0,2}/[ab]{1,2}`)
	rapid.Check(t, func(t *rapid.T) {
		p, err := ParsePattern(pattern.Draw(t, "p"))
		must.Succeed(t, err)
		q, err := ParsePattern(pattern.Draw(t, "q"))
		must.Succeed(t, err)
		everyName, someName := true, false
		for _, name := range names {
			everyName = everyName && (p.Matches(name) || !q.Matches(name))
			someName = someName || p.Matches(name) && q.Matches(name)
		}
		if p.Covers(q) != everyName {
			t.Fatalf("%s covers %s: %t, and selects all of its names: %t", p, q, p.Covers(q), everyName)
		}
		if p.Overlaps(q) != someName || q.Overlaps(p) != someName {
			t.Fatalf("%s overlaps %s: %t, the reverse: %t, and they have a name in common: %t", p, q, p.Overlaps(q),
				q.Overlaps(p), someName)
		}
	})
}

// TestDisjointPatterns checks that the result selects the same names, each by one pattern only, in
// the order of the names.
func TestDisjointPatterns(t *testing.T) {
	t.Parallel()
	names := shortNames()
	pattern := rapid.StringMatching(`\*|[ab][ab.]{0,2}\*|[ab][ab.]{0,2}/[ab]{0,2}\*|[ab][ab.]{0,2}/[ab]{1,2}`)
	rapid.Check(t, func(t *rapid.T) {
		var given []Pattern
		for _, text := range rapid.SliceOfN(pattern, 0, 6).Draw(t, "patterns") {
			p, err := ParsePattern(text)
			must.Succeed(t, err)
			given = append(given, p)
		}
		got := DisjointPatterns(given)
		selected := make([]string, len(got)) // the greatest name that each pattern selects
		for _, name := range names {
			matches := func(p Pattern) bool { return p.Matches(name) }
			i := slices.IndexFunc(got, matches)
			if (i >= 0) != slices.ContainsFunc(given, matches) || i >= 0 && slices.ContainsFunc(got[i+1:], matches) {
				t.Fatalf("%v of %v select %s otherwise, or twice", got, given, name)
			}
			if i >= 0 {
				selected[i] = max(selected[i], name.String())
			}
		}
		for _, name := range names {
			i := slices.IndexFunc(got, func(p Pattern) bool { return p.Matches(name) })
			if i > 0 && selected[i-1] >= name.String() {
				t.Fatalf("%s of %v comes before names of the pattern before", name, got)
			}
		}
	})
}

// shortNames returns names that are long enough for a name in and a name outside every pattern that
// TestPatternRelationsAgreeWithNames draws.
func shortNames() []Name {
	var names []Name
	for _, namespace := range texts("ab.", 4) {
		for _, part := range texts("ab", 3) {
			if name, err := ParseName(namespace + "/" + part); err == nil {
				names = append(names, name)
			}
		}
	}
	return names
}

// texts returns all texts of up to the given length.
func texts(characters string, length int) []string {
	list := []string{""}
	for from := 0; length > 0; length-- {
		to := len(list)
		for _, text := range list[from:to] {
			for _, c := range characters {
				list = append(list, text+string(c))
			}
		}
		from = to
	}
	return list
}

func TestPattern(t *testing.T) {
	t.Parallel()
	selects := map[string]map[string]bool{
		"*":             {"com.example/a": true, "a/b": true},
		"com.example/*": {"com.example/a": true, "com.example.evil/a": false, "Com.example/a": false},
		"com.ex*":       {"com.example/a": true, "com.e/x": false},
		"com.example/weather": {
			"com.example/weather": true, "com.example/weather2": false, "com.example/Weather": false,
		},
		"com.example/weather*": {"com.example/weather": true, "com.example/weather2": true},
	}
	for s, names := range selects {
		p, err := ParsePattern(s)
		if err != nil || p.String() != s {
			t.Errorf("ParsePattern(%q) = %q, %v, want it as it is", s, p, err)
		}
		for name, want := range names {
			if got := p.Matches(Name{name}); got != want {
				t.Errorf("%q matches %q: %t, want %t", s, name, got, want)
			}
		}
	}
	if (Pattern{}).Matches(Name{}) {
		t.Error("the zero pattern selects the zero name")
	}
	for _, s := range []string{
		"", "**", "*a", "com.*/a", "com.example/**", "com.example", "com.example/", "com example/*", "a/b\x00",
		strings.Repeat("a", 200) + "*",
	} {
		if _, err := ParsePattern(s); !fault.Is(err, fault.Invalid) {
			t.Errorf("ParsePattern(%q) = %v, want a fault of kind Invalid", s, err)
		}
	}
}
