package access_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/toolserver"
	"github.com/tollgate-dev/tollgate/core/trustlevel"
	"github.com/tollgate-dev/tollgate/test/must"
)

// naive decides from the texts of rules, as contract Z-3 says, without an index.
func naive(
	o access.Options, rules []audit.Details, m access.Member, q *access.Question, lists []access.ToolList,
) (access.Effect, string) {
	if m.Trust == trustlevel.HighRisk {
		return access.Challenge, ""
	}
	if o.OnChange == toolserver.DenyCalls && o.Mode != access.Observe && q.Call.Class == access.CallsTools && naiveRefuses(lists, q.Call.Name) {
		return access.Deny, ""
	}
	sorted := slices.Clone(rules)
	slices.SortFunc(sorted, func(a, b audit.Details) int {
		if n := a.Number("order") - b.Number("order"); n != 0 {
			return int(n)
		}
		if a.Text("effect") != b.Text("effect") {
			return strings.Compare(b.Text("effect"), a.Text("effect")) // deny is after allow
		}
		return strings.Compare(a.Text("name"), b.Text("name"))
	})
	for _, r := range sorted {
		if r.Text("mode") == "observe" || o.Mode == access.Observe || !naiveMatch(r, m, q, lists) {
			continue
		}
		effect := access.Effect(r.Text("effect"))
		level, _ := trustlevel.Parse(r.Text("minTrust"))
		if effect == access.Allow && m.Trust < level || effect == access.Deny && m.Kind == access.Anonymous {
			effect = access.Challenge
		}
		return effect, r.Text("name")
	}
	switch {
	case o.Default == access.Allow:
		return access.Allow, ""
	case m.Kind == access.Anonymous:
		return access.Challenge, ""
	}
	return access.Deny, ""
}

func naiveMatch(r audit.Details, m access.Member, q *access.Question, lists []access.ToolList) bool {
	some := func(field string, fits func(string) bool) bool {
		return slices.ContainsFunc(r.List(field), func(v audit.Value) bool { return fits(string(v.(audit.Text))) })
	}
	glob := func(pattern, text string) bool {
		prefix, wild := strings.CutSuffix(pattern, "*")
		return pattern == text || wild && strings.HasPrefix(text, prefix)
	}
	class := string(q.Call.Class)
	traits := naiveTraits(lists, q.Call.Name)
	expires, err := time.Parse(time.RFC3339, r.Text("expiresAt"))
	return some("subjects", func(s string) bool {
		kind, value, _ := strings.Cut(s, ":")
		return kind == "anyone" || kind == "everyone" && m.Kind != access.Anonymous ||
			kind == "person" && m.Kind == access.Person && m.ID == value ||
			kind == "service" && m.Kind == access.Service && m.ID == value ||
			kind == "group" && slices.ContainsFunc(m.Groups, func(g access.Group) bool { return g.Provider+"/"+g.Name == value }) ||
			kind == "grant" && slices.ContainsFunc(m.Grants, func(g access.Grant) bool {
				return string(g.Action) == value && glob(g.Pattern.String(), q.Server)
			})
	}) && some("servers", func(p string) bool { return glob(p, q.Server) }) &&
		(r["methods"] == nil || some("methods", func(s string) bool { return s == class })) &&
		(r["tools"] == nil || q.Call.Class == access.CallsTools && some("tools", func(p string) bool { return glob(p, q.Call.Name) })) &&
		(r["hints"] == nil || q.Call.Class == access.CallsTools && !some("hints", func(h string) bool {
			one, without := strings.CutPrefix(h, "not:")
			return traits[one] == without
		})) &&
		(r["clients"] == nil || some("clients", func(s string) bool { return s == q.Subject.Client() })) &&
		(r["networks"] == nil || some("networks", func(n string) bool { return netip.MustParsePrefix(n).Contains(q.From) })) &&
		(err != nil || expires.After(q.At))
}

// chance draws texts for rules and callers that meet often.
type chance struct{ *rand.Rand }

func (c chance) one(all ...string) string { return all[c.IntN(len(all))] }

func (c chance) some(most int, all ...string) audit.List {
	c.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return audit.Texts(all[:1+c.IntN(min(most, len(all)))])
}

func (c chance) onChange() toolserver.OnChange {
	return toolserver.OnChange(c.one("notify", "deny", "quarantine"))
}

func (c chance) server() string { return c.one("a", "ab", "b") + "/" + c.one("x", "xy", "z") }

func (c chance) rule(i int) audit.Details {
	patterns := []string{"*", "a*", "a/*", "ab/x", "a/x", "a/x*", "b/z", "ab*"}
	subjects := []string{
		"anyone", "everyone", "person:p0@x.example", "person:p1@x.example", "group:g/0", "group:g/1", "grant:publish",
		"grant:edit", "service:s0",
	}
	r := audit.Details{
		"name": audit.Text(fmt.Sprintf("r%02d", i)), "order": audit.Number(c.IntN(6)), "effect": audit.Text(c.one("allow", "deny")),
		"subjects": c.some(3, subjects...), "servers": c.some(3, patterns...), "mode": audit.Text(c.one("enforce", "enforce", "observe")),
	}
	if c.IntN(20) == 0 { // more pairs than the index spreads
		r["subjects"], r["servers"] = c.some(9, subjects...), c.some(8, patterns...)
		for n := range 100 {
			r["subjects"] = append(r.List("subjects"), audit.Text(fmt.Sprintf("person:other%d@x.example", n)))
		}
		r["subjects"] = r.List("subjects")[max(0, len(r.List("subjects"))-100):]
	}
	for field, values := range map[string][]string{
		"methods": {"tools/call", "tools/list", "prompts/*", "resources/*", "other"}, "tools": {"t", "tu", "t*", "u"},
		"networks": {"10.0.0.0/8", "10.1.0.0/16", "192.0.2.0/24"},
		"clients":  {"c0", "c1", "https://c.example/client.json"},
	} {
		if c.IntN(4) == 0 {
			r[field] = c.some(2, values...)
		}
	}
	if c.IntN(5) == 0 {
		hints := []string{c.one("readOnly", "not:readOnly", "destructive", "not:destructive", "openWorld", "not:openWorld")}
		r["hints"] = audit.Texts(append(hints, "not:idempotent", "idempotent")[:1+c.IntN(2)])
	}
	if c.IntN(20) == 0 { // likewise, with the tools
		r["tools"] = append(texts(60+c.IntN(100), "other%d"), audit.Text(c.one("t", "t*")))
	}
	if c.IntN(4) == 0 && r.Text("effect") == "allow" {
		r["minTrust"] = audit.Text(c.one("UNVERIFIED", "LIMITED_TRUST", "FULL_TRUST"))
	}
	if c.IntN(5) == 0 {
		r["expiresAt"] = audit.Text(c.one("2026-11-27T11:59:59Z", "2026-11-27T12:00:00Z", "2026-11-27T12:00:01Z"))
	}
	return r
}

func (c chance) member(t *testing.T) access.Member {
	kind := access.SubjectKind(c.IntN(4))
	if kind == access.Anonymous {
		return access.Member{}
	}
	m := access.Member{Kind: kind, Trust: trustlevel.All()[c.IntN(4)], ID: c.one("p0@x.example", "p1@x.example")}
	if kind == access.Service {
		m.ID = c.one("s0", "s1")
	}
	for range c.IntN(3) {
		m.Groups = append(m.Groups, access.Group{Provider: c.one("g", "h"), Name: c.one("0", "1")})
	}
	for range c.IntN(3) {
		p, err := toolserver.ParsePattern(c.one("*", "a/*", "ab/x"))
		must.Succeed(t, err)
		m.Grants = append(m.Grants, access.Grant{Action: toolserver.Action(c.one("publish", "edit")), Pattern: p})
	}
	return m
}

// TestDecisionsAgreeWithTheNaiveEvaluator compares 120,000 decisions, and explains each tenth.
func TestDecisionsAgreeWithTheNaiveEvaluator(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	c := chance{rand.New(rand.NewPCG(seed, 1))}
	var servers []access.Listing
	for _, a := range []string{"a", "ab", "b"} {
		for _, b := range []string{"x", "xy", "z"} {
			servers = append(servers, access.Listing{Name: mustName(t, a+"/"+b)})
		}
	}
	lists := map[string][]access.ToolList{}
	effects := map[access.Effect]int{}
	for range 600 {
		texts, rules := make([]audit.Details, c.IntN(25)), []access.Rule{}
		for i := range texts {
			texts[i] = c.rule(i)
			rules = append(rules, mustRule(t, texts[i]))
		}
		o := access.Options{Default: access.Effect(c.one("allow", "deny"))}
		if c.IntN(20) == 0 {
			o.Mode = access.Observe
		}
		o.OnChange = c.onChange()
		for i := range servers {
			servers[i].Tools = c.lists()
			lists[servers[i].Name.String()] = servers[i].Tools
		}
		s := access.Compile(o, rules, servers)
		for n := range 200 {
			m := c.member(t)
			subject := access.NewSubject(m)
			if m.Kind == access.Person {
				subject = subject.WithClient(c.one("", "c0", "https://c.example/client.json", "c2"))
			}
			q := access.Question{
				Subject: &subject, Server: c.server(), At: noon, From: netip.MustParseAddr(c.one("10.1.2.3", "10.2.0.1", "192.0.2.1")),
				Call: access.NewCall(c.one("tools/call", "tools/call", "tools/list", "prompts/get", "resources/read", "ping"), c.one("t", "tu", "u", "v")),
			}
			effect, name := naive(o, texts, m, &q, lists[q.Server])
			d := s.Decide(&q)
			effects[d.Effect]++
			if d.Effect != effect || string(d.Rule) != name {
				t.Fatalf("seed %d: %+v, want %s by %q, for %+v of %+v with %v", seed, d, effect, name, q, m, texts)
			}
			if n%10 == 0 {
				if e := s.Explain(&q); e.Decision != d {
					t.Fatalf("seed %d: %+v is explained as %+v", seed, d, e)
				}
			}
		}
	}
	for _, e := range []access.Effect{access.Allow, access.Deny, access.Challenge} {
		if effects[e] < 1000 {
			t.Errorf("seed %d: only %d of the decisions are %s", seed, effects[e], e)
		}
	}
}

// BenchmarkDecide decides calls by 10 and by 10,000 rules for 10,000 servers: each group has its
// namespaces, some rules are about tools, and one at the end denies.
func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		var rules []access.Rule
		for i := range n - 1 {
			r := audit.Details{
				"name": audit.Text(fmt.Sprint("r", i)), "order": audit.Number(i % 100), "subjects": list(fmt.Sprintf("group:acme/g%d", i%1000)),
				"servers": list(fmt.Sprintf("com.n%d/*", i%500)), "methods": nil,
			}
			if i%3 == 0 {
				r["tools"] = list("get_*")
			}
			rules = append(rules, mustRule(b, r))
		}
		rules = append(rules, mustRule(b, audit.Details{
			"name": audit.Text("last"), "order": audit.Number(10_000), "effect": audit.Text("deny"), "servers": list("*"),
		}))
		servers := make([]access.Listing, 10_000)
		for i := range servers {
			name := fmt.Sprintf("com.n%d/s%d", i%500, i)
			servers[i] = access.Listing{Name: mustName(b, name), Remotes: []string{fmt.Sprintf("https://tools%d.example.com/s%d/mcp", i%50, i)}}
		}
		s := access.Compile(access.Options{}, rules, servers)
		subject := access.NewSubject(access.Member{
			Kind: access.Person, ID: "ada@example.com", Trust: trustlevel.FullTrust,
			Groups: []access.Group{{Provider: "acme", Name: "g1"}, {Provider: "acme", Name: "g3"}, {Provider: "acme", Name: "g7"}},
		})
		call := access.NewCall("tools/call", "get_forecast")
		for name, q := range map[string]access.Question{
			"name":    {Server: "com.n3/s3", Call: call},
			"address": {Address: access.Address{Scheme: "https", Host: "tools3.example.com", Path: "/s3/mcp"}, Call: call},
			"denied":  {Server: "com.n400/s400", Call: call},
		} {
			q.Subject, q.At = &subject, noon
			b.Run(fmt.Sprintf("%d/%s", n, name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					s.Decide(&q)
				}
			})
		}
		b.Run(fmt.Sprintf("%d/compile", n), func(b *testing.B) {
			for b.Loop() {
				access.Compile(access.Options{}, rules, servers)
			}
		})
	}
}

// BenchmarkDecideLate decides calls that 10,000 rules could be about, of which only the last one is:
// each of the others fails by the condition that the case names.
func BenchmarkDecideLate(b *testing.B) {
	many := func(i int) audit.List {
		all := texts(100, "person:p%d@example.com")
		all[0] = audit.Text(fmt.Sprintf("person:other%d@example.com", i))
		return all
	}
	for name, change := range map[string]func(i int) audit.Details{
		"subjects": func(i int) audit.Details { return audit.Details{"subjects": list(fmt.Sprintf("group:acme/g%d", i))} },
		"many subjects": func(i int) audit.Details {
			return audit.Details{"subjects": many(i), "servers": list("*", "com.example/*")}
		},
		"servers": func(i int) audit.Details { return audit.Details{"servers": list(fmt.Sprintf("com.n%d/*", i))} },
		"tools":   func(i int) audit.Details { return audit.Details{"tools": list(fmt.Sprintf("other_%d", i))} },
		"clients": func(i int) audit.Details { return audit.Details{"clients": list(fmt.Sprintf("client-%d", i))} },
		"methods": func(int) audit.Details { return audit.Details{"methods": list("tools/list")} },
		"hints":   func(int) audit.Details { return audit.Details{"hints": list("readOnly", "not:openWorld")} },
		"networks": func(i int) audit.Details {
			return audit.Details{"networks": list(fmt.Sprintf("10.%d.%d.0/24", i/250, i%250))}
		},
		"expired": func(int) audit.Details { return audit.Details{"expiresAt": audit.Text("2026-01-01T00:00:00Z")} },
		"observe": func(int) audit.Details { return audit.Details{"mode": audit.Text("observe")} },
	} {
		rules := []access.Rule{mustRule(b, audit.Details{"name": audit.Text("last"), "order": audit.Number(10_000), "servers": list("*")})}
		for i := range 9_999 {
			fields := audit.Details{"name": audit.Text(fmt.Sprint("r", i)), "order": audit.Number(i % 100), "servers": list("*")}
			maps.Copy(fields, change(i))
			rules = append(rules, mustRule(b, fields))
		}
		s := access.Compile(access.Options{}, rules, []access.Listing{{Name: mustName(b, "com.example/weather")}})
		subject := access.NewSubject(access.Member{Kind: access.Person, ID: "ada@example.com", Trust: trustlevel.FullTrust})
		q := access.Question{
			Subject: &subject, Server: "com.example/weather", Call: access.NewCall("tools/call", "forecast"), At: noon,
			From: netip.MustParseAddr("192.0.2.1"),
		}
		if d := s.Decide(&q); d.Rule != "last" {
			b.Fatalf("%s: %+v", name, d)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.Decide(&q)
			}
		})
	}
}

func BenchmarkReadCall(b *testing.B) {
	r := access.Request{Method: "POST", Body: []byte(toolCall)}
	b.ReportAllocs()
	for b.Loop() {
		access.ReadCall(&r)
	}
}
