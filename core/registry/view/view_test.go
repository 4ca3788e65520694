package view

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/test/must"
)

func mustNew(t testing.TB, d Draft) View {
	t.Helper()
	d.Name = "team"
	v, err := New(d)
	must.Succeed(t, err)
	return v
}

func mustName(t testing.TB, s string) registry.Name {
	t.Helper()
	n, err := registry.ParseName(s)
	must.Succeed(t, err)
	return n
}

func TestNew(t *testing.T) {
	t.Parallel()
	v, err := New(Draft{
		Name: "team-1", Include: []string{"com.example/*", "com.example/*", "org.example/a"}, Exclude: []string{"*"},
		Deprecated: "hide", Access: "token",
	})
	if err != nil || v.Name != "team-1" || fmt.Sprint(v.Include) != "[com.example/* org.example/a]" ||
		fmt.Sprint(v.Exclude) != "[*]" ||
		v.Deprecated != Hide || v.Access != WithToken {
		t.Errorf("New = %+v, %v", v, err)
	}
	if v := mustNew(t, Draft{}); v.Deprecated != Show || v.Access != Public {
		t.Errorf("the defaults are %s and %s", v.Deprecated, v.Access)
	}
}

// TestBadDrafts: the message names the field.
func TestBadDrafts(t *testing.T) {
	t.Parallel()
	many := make([]string, registry.MaxPatterns+1)
	for i := range many {
		many[i] = fmt.Sprintf("com.example/s%d", i)
	}
	for _, c := range []struct {
		word  string
		draft Draft
	}{
		{"name of a view", Draft{}},
		{"must not be all", Draft{Name: "all"}},
		{"name of a view", Draft{Name: "Team"}},
		{"name of a view", Draft{Name: "team/1"}},
		{"name of a view", Draft{Name: "team\n"}},
		{"name of a view", Draft{Name: strings.Repeat("a", 41)}},
		{"include: ", Draft{Name: "team", Include: []string{""}}},
		{"include: ", Draft{Name: "team", Include: []string{"a*b"}}},
		{"exclude: ", Draft{Name: "team", Exclude: []string{"com.example"}}},
		{"include must have at most 100", Draft{Name: "team", Include: many}},
		{"exclude must have at most 100", Draft{Name: "team", Exclude: many}},
		{"deprecated must be", Draft{Name: "team", Deprecated: "no"}},
		{"access must be", Draft{Name: "team", Access: "private"}},
	} {
		if _, err := New(c.draft); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), c.word) {
			t.Errorf("New(%.60v) = %v, want a fault with %q", c.draft, err, c.word)
		}
	}
	if _, err := ParseTokenName("A"); !fault.Is(err, fault.Invalid) {
		t.Errorf("the token name A: %v", err)
	}
}

// drawView draws a view whose patterns often overlap.
func drawView(rt *rapid.T) View {
	pattern := rapid.StringMatching(`([ab](\.[ab])?(/[abz]?)?)?\*|[ab]\.[ab]/[abz]{1,2}`)
	v, err := New(Draft{
		Name: "team", Include: rapid.SliceOfN(pattern, 0, 5).Draw(rt, "include"),
		Exclude:    rapid.SliceOfN(pattern, 0, 5).Draw(rt, "exclude"),
		Deprecated: rapid.SampledFrom([]string{"show", "hide"}).Draw(rt, "deprecated"),
	})
	must.Succeed(rt, err)
	return v
}

// TestNames: the ranges have the names of the view, in order and each once.
func TestNames(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		v := drawView(rt)
		ranges := v.Names()
		if len(ranges) > 2*registry.MaxPatterns {
			rt.Fatalf("%d ranges", len(ranges))
		}
		for i, r := range ranges {
			if r.From >= r.Below || i > 0 && r.From < ranges[i-1].Below {
				rt.Fatalf("range %d of %q is empty or not after the one before", i, ranges)
			}
		}
		name := mustName(t, rapid.StringMatching(`[ab]\.[ab]/[abz]{1,3}`).Draw(rt, "name"))
		within := ranges == nil ||
			slices.ContainsFunc(ranges, func(r registry.NameRange) bool { return r.Contains(name.String()) })
		if within != v.Includes(name) {
			rt.Fatalf("%s is within %q: %t, and in the view: %t", name, ranges, within, v.Includes(name))
		}
	})
}

// TestExclusionWins: what an excluding pattern selects is not in the view.
func TestExclusionWins(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		v := drawView(rt)
		name := mustName(t, rapid.StringMatching(`[ab]\.[ab]/[abz]{1,2}`).Draw(rt, "name"))
		excluded, included := false, len(v.Include) == 0
		for _, p := range v.Exclude {
			excluded = excluded || p.Matches(name)
		}
		for _, p := range v.Include {
			included = included || p.Matches(name)
		}
		if v.Includes(name) != (included && !excluded) {
			rt.Fatalf("%s is in the view: %t; included: %t, excluded: %t", name, v.Includes(name), included, excluded)
		}
	})
}

func TestViewsOfAll(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]View{
		"all": OfAll(), "without patterns": mustNew(t, Draft{}),
		"with a star": mustNew(t, Draft{Include: []string{"com.example/a", "*"}}),
	} {
		if ranges := v.Names(); ranges != nil || !v.Includes(mustName(t, "z.z/z")) {
			t.Errorf("%s: ranges %q", name, ranges)
		}
	}
	if ranges := mustNew(t, Draft{Exclude: []string{"*"}}).Names(); ranges == nil || len(ranges) > 0 {
		t.Errorf("a view of nothing has the ranges %q", ranges)
	}
}

// TestLatest: the latest is shown, and no other shown version outranks it.
func TestLatest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		v, name := drawView(rt), mustName(t, rapid.StringMatching(`[ab]\.[ab]/[abz]`).Draw(rt, "name"))
		var all []registry.Release
		for i, text := range rapid.SliceOfNDistinct(rapid.StringMatching(`[0-3]\.[0-3]\.0|draft[0-3]`), 0, 6,
			rapid.ID[string]).Draw(rt, "versions") {
			version, err := registry.ParseVersion(text)
			must.Succeed(rt, err)
			status := rapid.SampledFrom([]registry.Status{
				registry.StatusActive, registry.StatusDeprecated, registry.StatusDeleted,
			}).Draw(rt, "status")
			all = append(all, registry.Release{
				Name: name, Version: version, Status: status, PublishedAt: time.Unix(int64(i), 0),
			})
		}
		latest, ok := v.Latest(all)
		shown := 0
		for _, r := range all {
			if !v.Includes(name) || v.Deprecated == Hide && r.Status == registry.StatusDeprecated {
				if ok && r == latest {
					rt.Fatalf("%s is the latest, and not shown", r.Version)
				}
				continue
			}
			shown++
			if highest, _ := registry.HighestRanked([]registry.Release{latest, r}); ok && highest != latest {
				rt.Fatalf("%s outranks the latest, %s", r.Version, latest.Version)
			}
		}
		if ok != (shown > 0) {
			rt.Fatalf("there is a latest: %t, of %d shown", ok, shown)
		}
	})
}

// TestEqual: only the same fields make equal views.
func TestEqual(t *testing.T) {
	t.Parallel()
	v := mustNew(t, Draft{Include: []string{"a.b/*"}, Exclude: []string{"a.b/c"}})
	if !v.Equal(mustNew(t, Draft{Include: []string{"a.b/*"}, Exclude: []string{"a.b/c"}})) {
		t.Error("a view differs from itself")
	}
	for _, other := range []Draft{
		{Include: []string{"a.b/*"}}, {Exclude: []string{"a.b/c"}},
		{Include: []string{"a.b/*"}, Exclude: []string{"a.b/c"}, Access: "token"},
		{Include: []string{"a.b/*"}, Exclude: []string{"a.b/c"}, Deprecated: "hide"},
	} {
		if v.Equal(mustNew(t, other)) {
			t.Errorf("%+v equals %+v", v, other)
		}
	}
}

// TestSecrets: a token is never printed, and needs no escape in a path.
func TestSecrets(t *testing.T) {
	t.Parallel()
	s := NewSecret([32]byte{255, 254, 253})
	if text := fmt.Sprintf("%v %s %q %#v", s, s, s, s); strings.Contains(text, string(s)) {
		t.Errorf("printed as %s", text)
	}
	if len(s) != len(secretPrefix)+43 ||
		strings.Trim(string(s), "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
		t.Errorf("%d characters: %s", len(s), string(s))
	}
	if s.Hash() == NewSecret([32]byte{255, 254, 252}).Hash() || s.Hash() != NewSecret([32]byte{255, 254, 253}).Hash() {
		t.Error("equal hashes of different tokens, or different ones of equal tokens")
	}
}

// TestPath checks the path of a view.
func TestPath(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		v    View
		path string
	}{
		{OfAll(), ""}, {View{Name: "data", Access: Public}, "/registries/data"},
		{View{Name: "data", Access: WithToken}, "/registries/data/t/TOKEN"},
		{View{Name: "data", Access: People}, "/registries/data/t/TOKEN"},
	} {
		if got := c.v.Path("TOKEN"); got != c.path {
			t.Errorf("%+v: the path is %s", c.v, got)
		}
	}
}
