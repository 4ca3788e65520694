package ruleset

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/test/must"
)

func TestExplain(t *testing.T) {
	set := mustCompile(t, newSource("shop",
		newDescriptor("user", "ada", perMinute(1), newDescriptor("action", "pay", perMinute(2))),
		newDescriptor("group", "", nil, newDescriptor("action", "", perMinute(3))),
	), newSource("empty"))
	tests := map[string]struct {
		domain ratelimit.Domain
		path   []ratelimit.Entry
		want   Miss
	}{
		"matched":            {"shop", newEntries("user", "ada"), Miss{}},
		"matched below":      {"shop", newEntries("group", "g", "action", "x"), Miss{}},
		"domain":             {"shopp", newEntries("user", "ada"), Miss{UnknownDomain, 0}},
		"key":                {"shop", newEntries("usr", "ada"), Miss{UnknownKey, 0}},
		"key below":          {"shop", newEntries("user", "ada", "act", "pay"), Miss{UnknownKey, 1}},
		"value":              {"shop", newEntries("user", "bob"), Miss{UnknownValue, 0}},
		"value below":        {"shop", newEntries("user", "ada", "action", "look"), Miss{UnknownValue, 1}},
		"deeper":             {"shop", newEntries("group", "g", "action", "x", "more", "y"), Miss{TooDeep, 2}},
		"no descriptors":     {"empty", newEntries("user", "ada"), Miss{TooDeep, 0}},
		"less deep":          {"shop", newEntries("group", "g"), Miss{NoLimit, 1}},
		"without any entry":  {"shop", nil, Miss{NoLimit, 0}},
		"no entry, no rules": {"empty", nil, Miss{NoLimit, 0}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := set.Explain(test.domain, test.path); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

// TestExplainAgreesWithMatch: there is a reason where there is no rule, and only there.
func TestExplainAgreesWithMatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		next := uint32(0)
		set, err := Compile([]Source{newSource("d", drawDescriptors(t, 3, &next)...)}, Options{})
		must.Succeed(t, err)
		var entries []ratelimit.Entry
		for range rapid.IntRange(0, 4).Draw(t, "depth") {
			entries = append(entries, ratelimit.Entry{
				Key:   rapid.StringMatching(`[abc]`).Draw(t, "key"),
				Value: rapid.StringMatching(`[ab]{0,3}`).Draw(t, "value"),
			})
		}
		miss := set.Explain("d", entries)
		if matched := set.Match("d", entries) != nil; matched != (miss == Miss{}) {
			t.Errorf("matched %t, %+v", matched, miss)
		}
		if miss.Level > len(entries) {
			t.Errorf("%+v of %d entries", miss, len(entries))
		}
	})
}
