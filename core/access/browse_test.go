package access_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/audit"
)

// TestRulesOfAServerAndAPerson selects the rules that could apply.
func TestRulesOfAServerAndAPerson(t *testing.T) {
	t.Parallel()
	var rules []access.Rule
	for i, c := range []rule{
		{"name": audit.Text("everyone")},
		{"name": audit.Text("person"), "subjects": list("service:ci", "person:ada@example.com"), "servers": list("org.other/x")},
		{"name": audit.Text("group"), "subjects": list("group:acme/dev"), "servers": list("*")},
		{"name": audit.Text("grant"), "subjects": list("grant:publish"), "servers": list("com.exam*")},
		{"name": audit.Text("grant-elsewhere"), "subjects": list("grant:publish"), "servers": list("org.other/*")},
		{"name": audit.Text("service"), "subjects": list("service:ci"), "servers": list("*")},
		{"name": audit.Text("anyone"), "subjects": list("anyone"), "servers": list("org.other/*"), "effect": audit.Text("deny")},
	} {
		c["order"] = audit.Number(10 - i)
		rules = append(rules, mustRule(t, c))
	}
	s := access.Compile(access.Options{}, rules, listings(t))
	person, nobody := ada(t), access.Subject{}
	for _, c := range []struct {
		filter access.Filter
		want   string
	}{
		{access.Filter{}, "anyone service grant-elsewhere grant group person everyone"},
		{access.Filter{Subject: &person}, "anyone grant group person everyone"},
		{access.Filter{Server: mustName(t, "com.example/weather")}, "service grant group everyone"},
		{access.Filter{Server: mustName(t, "org.other/x"), Subject: &person}, "anyone group person"},
		{access.Filter{Server: mustName(t, "com.example/weather"), Subject: &person}, "grant group everyone"},
		{access.Filter{Subject: &nobody}, "anyone"},
	} {
		page, total := s.Select(c.filter, 0, 100)
		var names []string
		for _, r := range page {
			names = append(names, string(r.Name))
		}
		if got := strings.Join(names, " "); got != c.want || total != len(names) {
			t.Errorf("%+v selects %q of %d, want %q", c.filter, got, total, c.want)
		}
		one, again := s.Select(c.filter, total-1, 5)
		if len(one) != 1 || again != total || one[0].Name != page[total-1].Name {
			t.Errorf("the last page of %+v is %v of %d", c.filter, one, again)
		}
	}
}

// TestLockingOut has the changes after which no call is allowed.
func TestLockingOut(t *testing.T) {
	t.Parallel()
	name := func(s string) audit.Text { return audit.Text(s) }
	denyAll := func(order int, more rule) rule {
		r := rule{"name": name("stop"), "order": audit.Number(order), "effect": name("deny"), "servers": list("*"), "subjects": list("anyone")}
		for k, v := range more {
			r[k] = v
		}
		return r
	}
	allow := rule{"name": name("allow")}
	ended := audit.Text("2026-11-27T12:00:00Z")
	allowed := access.Options{Default: access.Allow}
	for what, c := range map[string]struct {
		options access.Options
		rules   []rule
		name    string
		next    rule // nil for a removal
		want    bool
	}{
		"deny all first":                {rules: []rule{allow}, name: "stop", next: denyAll(1, nil), want: true},
		"deny all last":                 {rules: []rule{allow}, name: "stop", next: denyAll(11, nil)},
		"deny all with a token":         {rules: []rule{allow}, name: "stop", next: denyAll(1, rule{"subjects": list("everyone")}), want: true},
		"deny one":                      {rules: []rule{allow}, name: "stop", next: denyAll(1, rule{"subjects": list("service:ci")})},
		"deny some servers":             {rules: []rule{allow}, name: "stop", next: denyAll(1, rule{"servers": list("com.example/*")})},
		"deny a tool":                   {rules: []rule{allow}, name: "stop", next: denyAll(1, rule{"tools": list("rm")})},
		"deny a network":                {rules: []rule{allow}, name: "stop", next: denyAll(1, rule{"networks": list("10.0.0.0/8")})},
		"observe":                       {rules: []rule{allow}, name: "stop", next: denyAll(1, rule{"mode": name("observe")})},
		"it has ended":                  {rules: []rule{allow}, name: "stop", next: denyAll(1, rule{"expiresAt": ended})},
		"all observe":                   {options: access.Options{Mode: access.Observe, Default: access.Allow}, name: "stop", next: denyAll(1, nil)},
		"the default allows":            {options: allowed, name: "stop", next: denyAll(10_000, nil), want: true},
		"nothing was allowed":           {name: "stop", next: denyAll(1, nil)},
		"the only one that allows goes": {rules: []rule{allow, {"name": name("b"), "effect": name("deny")}}, name: "allow", want: true},
		"one of two that allow goes":    {rules: []rule{allow, {"name": name("b")}}, name: "allow"},
		"the other one has ended":       {rules: []rule{allow, {"name": name("b"), "expiresAt": ended}}, name: "allow", want: true},
		"the other one matches nothing": {rules: []rule{allow, {"name": name("b"), "tools": list("x"), "methods": list("other")}}, name: "allow", want: true},
		"the only one denies then":      {rules: []rule{allow}, name: "allow", next: rule{"name": name("allow"), "effect": name("deny")}, want: true},
		"the only one changes":          {rules: []rule{allow}, name: "allow", next: rule{"name": name("allow"), "tools": list("x")}},
		"it moves before what allows":   {rules: []rule{allow, denyAll(20, nil)}, name: "stop", next: denyAll(2, nil), want: true},
	} {
		var rules []access.Rule
		for _, r := range c.rules {
			rules = append(rules, mustRule(t, r))
		}
		var next *access.Rule
		if c.next != nil {
			r := mustRule(t, c.next)
			next = &r
		}
		if got := access.Compile(c.options, rules, nil).LocksOut(access.RuleName(c.name), next, noon); got != c.want {
			t.Errorf("%s: locks out = %t", what, got)
		}
	}
}

// TestLockedOut: after a change that locks out, no call with a token is allowed.
func TestLockedOut(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	c := chance{rand.New(rand.NewPCG(seed, 2))}
	names := []string{"a/x", "ab/xy", "b/z"}
	servers := make([]access.Listing, len(names))
	for i, n := range names {
		servers[i] = access.Listing{Name: mustName(t, n)}
	}
	locked := 0
	for range 3000 {
		var rules []access.Rule
		for i := range c.IntN(6) {
			rules = append(rules, mustRule(t, c.rule(i)))
		}
		o := access.Options{Default: access.Effect(c.one("allow", "deny"))}
		next := mustRule(t, rule{
			"name": audit.Text(fmt.Sprintf("r%02d", c.IntN(6))), "order": audit.Number(c.IntN(6)), "effect": audit.Text("deny"), "servers": list("*"),
		})
		if !access.Compile(o, rules, servers).LocksOut(next.Name, &next, noon) {
			continue
		}
		locked++
		rules = append(slices.DeleteFunc(rules, func(r access.Rule) bool { return r.Name == next.Name }), next)
		after := access.Compile(o, rules, servers)
		for range 50 {
			m := c.member(t)
			if m.Kind == access.Anonymous {
				continue
			}
			subject := access.NewSubject(m)
			q := access.Question{Subject: &subject, Server: c.one(names...), At: noon, Call: access.NewCall(c.one("tools/call", "ping"), c.one("t", "u"))}
			if d := after.Decide(&q); d.Effect == access.Allow {
				t.Fatalf("seed %d: %+v is allowed by %v", seed, q, rules)
			}
		}
	}
	if locked < 100 {
		t.Errorf("seed %d: only %d changes lock out", seed, locked)
	}
}
