package access_test

import (
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/audit"
)

// TestComparedRules compares two sets of rules about one call of a person whose groups are not known.
func TestComparedRules(t *testing.T) {
	t.Parallel()
	person := access.NewSubject(access.Member{Kind: access.Person, ID: "ada@example.com"})
	server := access.Listing{Name: mustName(t, "com.example/weather")}
	deny, z := audit.Text("deny"), audit.Text("z")
	group := rule{"subjects": list("group:acme/dev")}
	const same, uncertain, unknown = "same", "uncertain", "unknown" // unknown also of one whose groups are known
	for name, c := range map[string]struct {
		old, changed []rule
		want         string
	}{
		"no rules":                     {nil, nil, same},
		"a new one allows":             {nil, []rule{{}}, "deny  to allow r"},
		"it goes":                      {[]rule{{}}, nil, "allow r to deny "},
		"it denies now":                {[]rule{{}}, []rule{{"effect": deny}}, "allow r to deny r"},
		"another name":                 {[]rule{{}}, []rule{{"name": z}}, same},
		"another tool":                 {nil, []rule{{"tools": list("other")}}, same},
		"another server":               {nil, []rule{{"servers": list("org.other/x")}}, same},
		"it observes":                  {[]rule{{}}, []rule{{"mode": audit.Text("observe")}}, "allow r to deny "},
		"the same group":               {[]rule{group}, []rule{group}, same},
		"a group may allow":            {nil, []rule{group}, uncertain},
		"a group more, of who may":     {[]rule{{"name": z}}, []rule{{"name": z}, group}, same},
		"a group may deny":             {[]rule{{}}, []rule{{}, {"name": z, "effect": deny, "subjects": list("group:acme/dev")}}, uncertain},
		"a grant may deny":             {[]rule{{}}, []rule{{}, {"name": z, "effect": deny, "subjects": list("grant:edit")}}, uncertain},
		"the same hints":               {[]rule{{"hints": list("readOnly")}}, []rule{{"hints": list("readOnly")}}, same},
		"hints may allow":              {nil, []rule{{"hints": list("readOnly")}}, unknown},
		"hints of no tool":             {nil, []rule{{"hints": list("readOnly"), "tools": list("other")}}, same},
		"a service is not this person": {[]rule{{}}, []rule{{}, {"name": z, "effect": deny, "subjects": list("service:ci")}}, same},
	} {
		compile := func(all []rule) *access.Snapshot {
			var rules []access.Rule
			for _, r := range all {
				rules = append(rules, mustRule(t, r))
			}
			return access.Compile(access.Options{}, rules, nil)
		}
		if whole := access.NewSubject(access.Member{Kind: access.Person, ID: "ada@example.com", Whole: true}); c.want == uncertain {
			q := access.Question{Subject: &whole, Call: access.NewCall("tools/call", "forecast"), At: noon}
			if d := access.Compare(compile(c.old), compile(c.changed), &q, &server); !d.Same {
				t.Errorf("%s, of somebody without groups and grants: %+v", name, d)
			}
		}
		q := access.Question{Subject: &person, Call: access.NewCall("tools/call", "forecast"), At: noon}
		d := access.Compare(compile(c.old), compile(c.changed), &q, &server)
		got := string(d.Old.Effect) + " " + string(d.Old.Rule) + " to " + string(d.New.Effect) + " " + string(d.New.Rule)
		if d.Same {
			got = same
		} else if d.Uncertain {
			if got = uncertain; c.want == unknown {
				got = unknown
			}
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestComparedRulesAgreeWithDecisions: what is certain about a caller whose groups and grants are not
// known is what both sets of rules decide about one who has some.
func TestComparedRulesAgreeWithDecisions(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	c := chance{rand.New(rand.NewPCG(seed, 4))}
	counts := map[string]int{}
	for range 3000 {
		var rules, changed []access.Rule
		for i := range c.IntN(8) {
			r := mustRule(t, c.rule(i))
			rules = append(rules, r)
			if c.IntN(4) > 0 {
				changed = append(changed, r)
			}
		}
		changed = append(changed, mustRule(t, c.rule(50)))
		o := access.Options{Default: access.Effect(c.one("allow", "deny"))}
		server := access.Listing{Name: mustName(t, c.server()), Tools: c.lists()}
		servers := []access.Listing{server}
		before, after := access.Compile(o, rules, servers), access.Compile(o, changed, servers)
		m := c.member(t)
		switch m.Kind {
		case access.Service:
			m.Groups = nil // only people and tokens of a company have some
		case access.Foreign:
			m.Grants = nil
		}
		whole := access.NewSubject(m)
		m.Groups, m.Grants = nil, nil
		known := access.NewSubject(m)
		q := access.Question{
			Subject: &known, Server: server.Name.String(), At: noon, From: netip.MustParseAddr(c.one("10.1.2.3", "192.0.2.1")),
			Call: access.NewCall(c.one("tools/call", "tools/list", "ping"), c.one("t", "u")),
		}
		d := access.Compare(before, after, &q, &server)
		if d.Uncertain {
			counts["uncertain"]++
			continue
		}
		q.Subject = &whole
		old, now := before.Decide(&q), after.Decide(&q)
		if d.Same != (old.Effect == now.Effect) || !d.Same && (d.Old.Effect != old.Effect || d.New.Effect != now.Effect) {
			t.Fatalf("seed %d: %+v of %+v, decided %+v and %+v", seed, d, q, old, now)
		}
		if d.Same {
			counts["same"]++
		} else {
			counts["changed"]++
		}
	}
	for _, kind := range []string{"same", "changed", "uncertain"} {
		if counts[kind] < 50 {
			t.Errorf("seed %d: %v", seed, counts)
		}
	}
}
