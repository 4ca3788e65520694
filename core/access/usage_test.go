package access_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/toolserver"
)

// TestUsages says in words what a person may do.
func TestUsages(t *testing.T) {
	t.Parallel()
	person := ada(t)
	deny := audit.Text("deny")
	for name, c := range map[string]struct {
		options access.Options
		rules   []rule
		want    string // the servers, each with its sentences
	}{
		"nothing":                   {},
		"everything by the default": {options: access.Options{Default: access.Allow}, want: "com.example/mail: May use everything. com.example/weather: May use everything. org.other/x: May use everything."},
		"a namespace":               {rules: []rule{{}}, want: "com.example/mail: May use everything. com.example/weather: May use everything."},
		"tools, networks and trust": {
			rules: []rule{{"servers": list("org.other/x"), "tools": list("search", "read_*"), "networks": list("10.0.0.0/8"), "minTrust": audit.Text("FULL_TRUST")}},
			want:  "org.other/x: May call the tools search and read_*, at full trust or above, from 10.0.0.0/8."},
		"some tools not": {
			rules: []rule{{"tools": list("rm"), "effect": deny, "order": audit.Number(1)}, {"name": audit.Text("b"), "servers": list("com.example/mail")}},
			want:  "com.example/mail: May not call the tool rm. May use everything."},
		"some tools not, by the default": {
			options: access.Options{Default: access.Allow}, rules: []rule{{"tools": list("rm"), "effect": deny, "servers": list("org.other/x")}},
			want: "com.example/mail: May use everything. com.example/weather: May use everything. org.other/x: May not call the tool rm. May do everything else."},
		"nothing after a denial": {rules: []rule{{"effect": deny, "order": audit.Number(1)}, {"name": audit.Text("b")}}},
		"only observed":          {rules: []rule{{"mode": audit.Text("observe")}}},
		"ended":                  {rules: []rule{{"expiresAt": audit.Text("2026-11-27T12:00:00Z")}}},
		"by a client": {
			rules: []rule{{"clients": list("vscode"), "servers": list("org.other/x")}, {"name": audit.Text("b"), "clients": list("x"), "effect": deny}},
			want:  "org.other/x: May use everything, with a token of vscode."},
		"of another": {rules: []rule{{"subjects": list("service:ci")}}},
		"by a grant": {
			rules: []rule{{"subjects": list("grant:publish"), "servers": list("*")}},
			want:  "com.example/mail: May use everything. com.example/weather: May use everything."},
	} {
		var rules []access.Rule
		for _, r := range c.rules {
			rules = append(rules, mustRule(t, r))
		}
		var words []string
		page, next := access.Compile(c.options, rules, listings(t)).Usages(&person, noon, "", 10)
		for _, u := range page {
			words = append(words, u.Server.String()+": "+strings.Join(u.Lines(), " "))
		}
		if got := strings.Join(words, " "); got != c.want || next != "" {
			t.Errorf("%s:\n%s\nwant\n%s (next %q)", name, got, c.want, next)
		}
	}
}

// TestLinesAreBounded: many rules are a few lines.
func TestLinesAreBounded(t *testing.T) {
	t.Parallel()
	u := access.Usage{}
	for i := range 100 {
		u.Rules = append(u.Rules, mustRule(t, rule{"tools": list(fmt.Sprintf("t%d", i/2))}))
	}
	if lines := u.Lines(); len(lines) != 11 || lines[0] != "May call the tool t0." || lines[1] != "May call the tool t1." {
		t.Errorf("%d lines: %q", len(lines), lines)
	}
}

// TestPagesOfUsages reads all servers page by page, also if only the last may be used.
func TestPagesOfUsages(t *testing.T) {
	t.Parallel()
	person := ada(t)
	var servers []access.Listing
	for i := range 2500 {
		servers = append(servers, access.Listing{Name: mustName(t, fmt.Sprintf("com.example/s%04d", 2499-i))})
	}
	for want, pattern := range map[int]string{2500: "com.example/*", 1: "com.example/s2499", 0: "org.other/x"} {
		s := access.Compile(access.Options{}, []access.Rule{mustRule(t, rule{"servers": list(pattern)})}, servers)
		seen, pages, last := 0, 0, ""
		for after := ""; ; pages++ {
			page, next := s.Usages(&person, noon, after, 100)
			for _, u := range page {
				if u.Server.String() <= last || u.Server.String() <= after {
					t.Fatalf("%s comes after %s", u.Server, last)
				}
				last, seen = u.Server.String(), seen+1
			}
			if len(page) > 100 {
				t.Fatalf("a page has %d", len(page))
			}
			if after = next; after == "" {
				break
			}
		}
		if seen != want || pages > 25 {
			t.Errorf("%s: %d servers on %d pages, want %d", pattern, seen, pages, want)
		}
	}
}

// TestUsagesAgreeWithDecisions: by the rules of a usage alone, every call is decided as by all rules.
func TestUsagesAgreeWithDecisions(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	c := chance{rand.New(rand.NewPCG(seed, 3))}
	var servers []access.Listing
	for _, a := range []string{"a", "ab", "b"} {
		for _, b := range []string{"x", "xy", "z"} {
			servers = append(servers, access.Listing{Name: mustName(t, a+"/"+b)})
		}
	}
	allowed := 0
	for range 1000 {
		var rules []access.Rule
		for i := range c.IntN(15) {
			rules = append(rules, mustRule(t, c.rule(i)))
		}
		for i := range servers {
			servers[i].Tools = c.lists()
		}
		reaction := c.onChange()
		s := access.Compile(access.Options{Default: access.Effect(c.one("allow", "deny")), OnChange: reaction}, rules, servers)
		m := c.member(t)
		subject := access.NewSubject(m)
		page, _ := s.Usages(&subject, noon, "", 100)
		of := map[toolserver.Name]access.Usage{}
		for _, u := range page {
			of[u.Server] = u
		}
		for range 30 {
			name := mustName(t, c.server())
			q := access.Question{
				Subject: &subject, Server: name.String(), At: noon, From: netip.MustParseAddr(c.one("10.1.2.3", "10.2.0.1", "192.0.2.1")),
				Call: access.NewCall(c.one("tools/call", "tools/list", "prompts/get", "ping"), c.one("t", "tu", "u", "v")),
			}
			d := s.Decide(&q)
			u := of[name] // of none, it is the zero value, which denies
			alone := access.Compile(access.Options{Default: u.Rest, OnChange: reaction}, u.Rules, servers).Decide(&q)
			if d.Effect == access.Allow {
				allowed++
			}
			if (d.Effect == access.Allow) != (alone.Effect == access.Allow) {
				t.Fatalf("seed %d: %+v is %+v, and by its usage %+v %+v", seed, q, d, alone, u)
			}
		}
	}
	if allowed < 1000 {
		t.Errorf("seed %d: only %d calls are allowed", seed, allowed)
	}
}
