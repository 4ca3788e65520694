package explain_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/explain"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
	"github.com/tollgate-dev/tollgate/test/must"
)

var rules = []ruleset.Source{{
	Domain: ruleset.Text{Value: "shop"},
	Descriptors: []ruleset.Descriptor{
		newDescriptor("user", "ada", 1, nil),
		newDescriptor("user", "a*", 2, func(l *ruleset.Limit) { l.Name = "letter" }),
		newDescriptor("user", "*a", 3, func(l *ruleset.Limit) {
			l.Name, l.Replaces = "end", []ruleset.Text{{Value: "letter"}}
		}),
		newDescriptor("user", "", 4, func(l *ruleset.Limit) { *l = ruleset.Limit{Unlimited: true} }),
	},
}}

func newDescriptor(key, value string, line int, change func(*ruleset.Limit)) ruleset.Descriptor {
	at := ruleset.Position{File: "shop.yaml", Line: line}
	l := &ruleset.Limit{Unit: &ruleset.Text{Value: "minute"}, Requests: &ruleset.Requests{Count: 10}}
	if change != nil {
		change(l)
	}
	return ruleset.Descriptor{
		Key: ruleset.Text{Value: key, At: at}, Value: ruleset.Text{Value: value, At: at}, Limit: l,
	}
}

// results explains descriptors, each written as "key=value,key=value".
func results(t *testing.T, domain ratelimit.Domain, descriptors ...string) []explain.Result {
	t.Helper()
	set, err := ruleset.Compile(rules, ruleset.Options{})
	must.Succeed(t, err)
	r := &ratelimit.Request{Domain: domain}
	for _, text := range descriptors {
		entries, err := ratelimit.ParseEntries(text)
		must.Succeed(t, err)
		r.Descriptors = append(r.Descriptors, ratelimit.Descriptor{Entries: entries})
	}
	return explain.Explain(set, r, explain.Options{Prefix: "p_", Now: time.Unix(90, 0)})
}

// TestTried: all descriptors with the key are listed in the order in which they are tried, each
// with its reason.
func TestTried(t *testing.T) {
	tests := map[string]struct {
		line int
		want []string
	}{
		"user=ada": {1, []string{
			"exact ada true the value is equal",
			"wildcard a* false the pattern matches, but an equal value comes first",
			"wildcard *a false the pattern matches, but an equal value comes first",
			"key  false an equal value comes first",
		}},
		"user=anna": {2, []string{
			"exact ada false the request has another value", "wildcard a* true the pattern matches, and no exact value does",
			"wildcard *a false the pattern matches, but one before it does too",
			"key  false a pattern that matches comes first",
		}},
		"user=bob": {4, []string{
			"exact ada false the request has another value", "wildcard a* false the pattern does not match",
			"wildcard *a false the pattern does not match",
			"key  true no value and no pattern matches, so the key alone does",
		}},
	}
	for descriptor, test := range tests {
		r := results(t, "shop", descriptor)[0]
		got := make([]string, len(r.Tried))
		for i, one := range r.Tried {
			got[i] = fmt.Sprintf("%s %s %t %s", one.Kind, one.Pattern, one.Matched, one.Why)
		}
		if r.Rule == nil || r.Rule.Line != test.line || r.Rule.File != "shop.yaml" || !slices.Equal(got, test.want) {
			t.Errorf("%s: rule %v, tried\n%s\nwant line %d,\n%s", descriptor, r.Rule, strings.Join(got, "\n"),
				test.line, strings.Join(test.want, "\n"))
		}
	}
}

// TestExplain: the counter has a key only if the descriptor would be counted.
func TestExplain(t *testing.T) {
	tests := map[string]struct {
		domain      ratelimit.Domain
		descriptors []string
		want        string // of each descriptor: why, replaced by, and the key
	}{
		"limited":   {"shop", []string{"user=ada"}, "||p_4:shop4:user3:ada/60/60/2"},
		"unlimited": {"shop", []string{"user=bob"}, "||"},
		"replaced":  {"shop", []string{"user=anna", "user=eva"}, "|end|;||p_4:shop4:user3:eva/60/60/2"},
		"value": {
			"shop", []string{"user=bob,path=/"}, "the rules end at level 1, but the descriptor has more entries||",
		},
		"domain": {"none", []string{"user=ada"}, "the domain is not configured||"},
		"key":    {"shop", []string{"usr=ada"}, "no rule has the key \"usr\" at level 1||"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, r := range results(t, test.domain, test.descriptors...) {
				got = append(got, r.Why+"|"+string(r.ReplacedBy)+"|"+r.CounterKey)
			}
			if text := strings.Join(got, ";"); text != test.want {
				t.Errorf("got %s, want %s", text, test.want)
			}
		})
	}
}

// TestOverride: a limit of the request is counted in place of the rule, in a domain that has rules.
func TestOverride(t *testing.T) {
	set, err := ruleset.Compile(rules, ruleset.Options{})
	must.Succeed(t, err)
	own := ratelimit.Limit{RequestsPerUnit: 5, Unit: ratelimit.Hour}
	r := &ratelimit.Request{
		Domain: "shop", Descriptors: []ratelimit.Descriptor{
			{Entries: []ratelimit.Entry{{Key: "user", Value: "ada"}}, Override: &own},
		},
	}
	got := explain.Explain(set, r, explain.Options{Now: time.Unix(3700, 0)})[0]
	if got.Rule != nil || got.Why != "the request has a limit for this descriptor" ||
		got.CounterKey != "4:shop4:user3:ada/3600/3600/0" {
		t.Errorf("in a domain with rules: %+v", got)
	}
	r.Domain = "none"
	if got := explain.Explain(set, r, explain.Options{})[0]; got.CounterKey != "" ||
		got.Why != "the domain is not configured" {
		t.Errorf("in another domain: %+v", got)
	}
}

// TestTriedIsBounded: of a great number of values, the list has the first ones and says that there
// are more.
func TestTriedIsBounded(t *testing.T) {
	source := ruleset.Source{Domain: ruleset.Text{Value: "shop"}}
	for i := range ruleset.MaxTried + 1 {
		source.Descriptors = append(source.Descriptors, newDescriptor("user", fmt.Sprint("u", i), i+1, nil))
	}
	set, err := ruleset.Compile([]ruleset.Source{source}, ruleset.Options{})
	must.Succeed(t, err)
	list, more := set.Tried("shop", []ratelimit.Entry{{Key: "user", Value: "u0"}})
	if len(list) != ruleset.MaxTried || !more || list[0].Pattern != "u0" || list[1].Pattern != "u1" {
		t.Errorf("%d of them, more %t, the first %+v", len(list), more, list[0])
	}
}
