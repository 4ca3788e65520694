package access_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/toolserver"
	"github.com/tollgate-dev/tollgate/core/trustlevel"
)

// tool returns a tool whose mark is that of its name and a text.
func tool(name, content string, traits toolserver.Traits) toolserver.Tool {
	t := toolserver.Tool{Name: name, Traits: traits}
	copy(t.Mark[:], name+" "+content)
	return t
}

// toolList returns a list of a part, which was sent some minutes after noon.
func toolList(version, part string, minute int, approved bool, tools ...toolserver.Tool) access.ToolList {
	return access.ToolList{
		ListName: access.ListName{Version: version, Place: part, At: noon.Add(time.Duration(minute) * time.Minute)},
		Part:     part, Approved: approved, Tools: tools,
	}
}

// lists draws the tool lists of a server.
func (c chance) lists() (all []access.ToolList) {
	for i := range c.IntN(5) {
		l := toolList(c.one("1", "2"), c.one("p", "q"), i, c.IntN(2) == 0)
		for _, name := range []string{"t", "tu", "u", "other3"} {
			if c.IntN(2) == 0 {
				l.Tools = append(l.Tools, tool(name, c.one("a", "b"), []toolserver.Traits{
					toolserver.ReadOnly, toolserver.ReadOnly | toolserver.OpenWorld, toolserver.DefaultTraits, toolserver.Idempotent, 0,
				}[c.IntN(5)]))
			}
		}
		all = append(all, l)
	}
	return all
}

// naiveTraits returns what holds of a tool by its lists, as contract W-9 says.
func naiveTraits(lists []access.ToolList, name string) map[string]bool {
	found := false
	all := map[string]bool{"readOnly": true, "idempotent": true}
	for _, l := range lists {
		for _, t := range l.Tools {
			if l.Approved && t.Name == name {
				found = true
				all["readOnly"] = all["readOnly"] && t.Traits&toolserver.ReadOnly != 0
				all["idempotent"] = all["idempotent"] && t.Traits&toolserver.Idempotent != 0
				all["destructive"] = all["destructive"] || t.Traits&toolserver.Destructive != 0
				all["openWorld"] = all["openWorld"] || t.Traits&toolserver.OpenWorld != 0
			}
		}
	}
	if !found {
		return map[string]bool{"destructive": true, "openWorld": true}
	}
	return all
}

// naiveRefuses reports whether a tool is not as it was approved, as contract W-7 says.
func naiveRefuses(lists []access.ToolList, name string) bool {
	some, known := false, false
	approved := map[toolserver.Mark]bool{}
	shown := map[string]access.ToolList{}
	for _, l := range lists {
		some = some || l.Approved
		if !l.Approved && !shown[l.Part].At.After(l.At) {
			shown[l.Part] = l
		}
		for _, t := range l.Tools {
			if l.Approved {
				approved[t.Mark] = true
				known = known || t.Name == name
			}
		}
	}
	for _, l := range shown {
		for _, t := range l.Tools {
			if t.Name == name && !approved[t.Mark] {
				return some
			}
		}
	}
	return some && !known
}

// TestHintsOfCalls has the sentences of contract W-9.
func TestHintsOfCalls(t *testing.T) {
	t.Parallel()
	person := ada(t)
	server := access.Listing{Name: mustName(t, "com.example/weather"), Tools: []access.ToolList{
		toolList("1", "p", 0, true,
			tool("get", "", toolserver.ReadOnly|toolserver.OpenWorld), tool("put", "", toolserver.Idempotent),
			tool("rm", "", toolserver.DefaultTraits), tool("both", "", toolserver.ReadOnly)),
		toolList("2", "q", 1, true, tool("both", "x", toolserver.OpenWorld), tool("none", "", 0)),
		toolList("2", "q", 2, false, tool("rm", "harmless", toolserver.ReadOnly), tool("new", "", toolserver.ReadOnly)),
	}}
	for hints, want := range map[string]string{ // the tools that a rule with the hints is about
		"readOnly": "get", "not:readOnly": "both new none put rm unknown", "destructive": "new rm unknown",
		"not:destructive": "both get none put", "idempotent": "put", "openWorld": "both get new rm unknown", "not:openWorld": "none put",
		"readOnly openWorld": "get", "not:readOnly not:destructive not:idempotent not:openWorld": "none",
	} {
		r := mustRule(t, rule{"hints": list(strings.Fields(hints)...)})
		s := access.Compile(access.Options{}, []access.Rule{r}, []access.Listing{server})
		ask := func(method, tool string) access.Decision {
			q := access.Question{Subject: &person, Server: "com.example/weather", Call: access.NewCall(method, tool), At: noon}
			d := s.Decide(&q)
			if e := s.Explain(&q); e.Decision != d || d.Rule == "" && method == "tools/call" && e.Steps[0].Failed != access.OnHint {
				t.Errorf("%s of %s: %+v is explained as %+v", hints, tool, d, e)
			}
			return d
		}
		var got []string
		for _, name := range []string{"both", "get", "new", "none", "put", "rm", "unknown"} {
			if ask("tools/call", name).Effect == access.Allow {
				got = append(got, name)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", hints, got, want)
		}
		for _, method := range []string{"tools/list", "prompts/get", "ping"} {
			if d := ask(method, "get"); d.Effect != access.Deny {
				t.Errorf("%s: %s is %+v", hints, method, d)
			}
		}
		cut := access.ReadCall(&access.Request{Method: "POST", Cut: true})
		d := s.Decide(&access.Question{Subject: &person, Server: "com.example/weather", Call: cut, At: noon})
		if d.Reason != access.Unreadable {
			t.Errorf("%s: a call that cannot be read is %+v", hints, d)
		}
	}
}

// TestExplainedTools: an explanation has what holds of a tool, and the list by which it does.
func TestExplainedTools(t *testing.T) {
	t.Parallel()
	person := ada(t)
	server := access.Listing{Name: mustName(t, "com.example/weather"), Tools: []access.ToolList{
		toolList("1", "https://a.example/mcp", 0, true, tool("get", "", toolserver.ReadOnly|toolserver.OpenWorld), tool("put", "", toolserver.DefaultTraits)),
		toolList("2", "package 0", 1, true, tool("get", "", toolserver.ReadOnly), tool("put", "", toolserver.DefaultTraits)),
		toolList("2", "package 0", 2, false, tool("put", "other", toolserver.DefaultTraits)),
	}}
	s := access.Compile(access.Options{}, nil, []access.Listing{server})
	explain := func(server, method, tool string) *access.ToolFacts {
		e := s.Explain(&access.Question{Subject: &person, Server: server, Call: access.NewCall(method, tool), At: noon})
		return e.Tool
	}
	defaults := []access.Hint{"not:readOnly", "destructive", "not:idempotent", "openWorld"}
	for name, want := range map[string]*access.ToolFacts{ // the more careful list, then the newest one
		"get": {
			Hints: []access.Hint{"readOnly", "not:destructive", "not:idempotent", "openWorld"},
			List:  &access.ListName{Version: "1", Place: "https://a.example/mcp", At: noon},
		},
		"put":  {Hints: defaults, List: &access.ListName{Version: "2", Place: "package 0", At: noon.Add(time.Minute)}, Refused: true},
		"none": {Hints: defaults, Refused: true},
	} {
		if got := explain("com.example/weather", "tools/call", name); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	for name, want := range map[string]string{
		"get":  "It is read-only, not destructive, not idempotent and open-world, by the approved list of 1, https://a.example/mcp, of 27 November 2026, 12:00:00 UTC.",
		"put":  "It is not read-only, destructive, not idempotent and open-world, by the approved list of 2, package 0, of 27 November 2026, 12:01:00 UTC. The server shows it otherwise now.",
		"none": "No approved list has it, so it counts as not read-only, destructive, not idempotent and open-world.",
	} {
		if got := explain("com.example/weather", "tools/call", name).Sentence(); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := explain("com.example/unknown", "tools/call", "get"); !reflect.DeepEqual(got, &access.ToolFacts{Hints: defaults}) {
		t.Errorf("of an unknown server: %+v", got)
	}
	if got := explain("com.example/weather", "prompts/get", "get"); got != nil {
		t.Errorf("of a prompt: %+v", got)
	}
}

// TestChangedTools has the sentences of contract W-7: what denies a call, whatever the rules say, and what does not.
func TestChangedTools(t *testing.T) {
	t.Parallel()
	person, anyone, refused := ada(t), access.Subject{}, access.Refused()
	get, other := tool("get", "a", 0), tool("get", "b", 0)
	cut := access.ReadCall(&access.Request{Method: "POST", Cut: true})
	approved := toolList("1", "p", 0, true, get, tool("gone", "", 0))
	changed := toolList("1", "p", 1, false, other, tool("new", "", 0))
	type lists = []access.ToolList
	deny := access.Options{OnChange: toolserver.DenyCalls, Default: access.Allow}
	for name, c := range map[string]struct {
		lists   lists
		options access.Options
		subject *access.Subject
		call    access.Call
		want    string // effect, reason, and what would have been without the mode
	}{
		"as approved":                   {lists: lists{approved}, want: "allow rule"},
		"changed":                       {lists: lists{approved, changed}, want: "deny tool_changed"},
		"changed, without a token":      {lists: lists{approved, changed}, subject: &anyone, want: "deny tool_changed"},
		"changed, and a bad token":      {lists: lists{approved, changed}, subject: &refused, want: "challenge invalid_token"},
		"the setting is notify":         {lists: lists{approved, changed}, options: access.Options{}, want: "allow rule"},
		"all observe":                   {lists: lists{approved, changed}, options: access.Options{OnChange: toolserver.DenyCalls, Default: access.Allow, Mode: access.Observe}, want: "allow default deny tool_changed"},
		"removed":                       {lists: lists{approved, changed}, call: access.NewCall("tools/call", "gone"), want: "allow rule"},
		"new":                           {lists: lists{approved, changed}, call: access.NewCall("tools/call", "new"), want: "deny tool_changed"},
		"in no approved list":           {lists: lists{approved}, call: access.NewCall("tools/call", "other"), want: "deny tool_changed"},
		"in upper case":                 {lists: lists{approved, changed}, call: access.NewCall("tools/call", "GET"), want: "deny tool_changed"},
		"with the name of a target":     {lists: lists{approved}, call: access.NewCall("tools/call", "weather_get"), want: "deny tool_changed"},
		"approved by another version":   {lists: lists{approved, changed, toolList("2", "q", 2, true, other)}, want: "allow rule"},
		"it is again as it was":         {lists: lists{approved, changed, toolList("2", "p", 3, false, get)}, want: "allow rule"},
		"another part is as it was":     {lists: lists{approved, changed, toolList("2", "q", 3, false, get)}, want: "deny tool_changed"},
		"no list is approved":           {lists: lists{changed}, want: "allow rule"},
		"no list":                       {want: "allow rule"},
		"no tool":                       {lists: lists{approved, changed}, call: access.NewCall("tools/list", ""), want: "allow rule"},
		"a prompt of the name":          {lists: lists{approved, changed}, call: access.NewCall("prompts/get", "get"), want: "allow rule"},
		"it cannot be read":             {lists: lists{approved}, call: cut, want: "deny unreadable"},
		"it cannot be read, no list":    {lists: lists{changed}, call: cut, want: "allow rule"},
		"it cannot be read, notify":     {lists: lists{approved}, options: access.Options{}, call: cut, want: "allow rule"},
		"an approved list has no tools": {lists: lists{toolList("1", "p", 0, true)}, want: "deny tool_changed"},
	} {
		if !strings.Contains(name, "notify") && c.options == (access.Options{}) {
			c.options = deny
		}
		q := access.Question{Subject: &person, Server: "com.example/weather", Call: access.NewCall("tools/call", "get"), At: noon}
		if c.subject != nil {
			q.Subject = c.subject
		}
		if c.call.Class != "" {
			q.Call = c.call
		}
		s := access.Compile(c.options, []access.Rule{mustRule(t, rule{"subjects": list("anyone")})},
			[]access.Listing{{Name: mustName(t, "com.example/weather"), Tools: c.lists}})
		d := s.Decide(&q)
		got := strings.TrimSpace(fmt.Sprint(d.Effect, " ", d.Reason, " ", d.Observed.Effect, " ", d.Observed.Reason))
		if c.options.Mode == access.Observe {
			got = fmt.Sprint(d.Effect, " ", d.Reason, " ", d.Observed.Effect, " ", d.Observed.Reason)
		}
		if got != c.want || s.Explain(&q).Decision != d {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestOthersApproveNothing: a server whose publisher has approved a list of their own, at the address of another one,
// opens nothing of that, and nothing is opened by a server that is not listed.
func TestOthersApproveNothing(t *testing.T) {
	t.Parallel()
	person := ada(t)
	get, other := tool("get", "a", 0), tool("get", "b", 0)
	url := []string{"https://t.example.com/mcp"}
	servers := []access.Listing{
		{Name: mustName(t, "com.example/own"), Remotes: url, Tools: []access.ToolList{toolList("1", "p", 0, true, get), toolList("1", "p", 1, false, other)}},
		{Name: mustName(t, "com.rogue/copy"), Remotes: url, Tools: []access.ToolList{toolList("1", "p", 2, true, other)}},
	}
	o := access.Options{Default: access.Allow, Unlisted: access.Allow, OnChange: toolserver.DenyCalls}
	s := access.Compile(o, nil, servers)
	q := access.Question{Subject: &person, Address: access.Address{Scheme: "https", Host: "t.example.com", Path: "/mcp"}, Call: access.NewCall("tools/call", "get"), At: noon}
	if d := s.Decide(&q); d.Reason != access.ToolChanged || d.Server != "com.example/own" {
		t.Errorf("at the address of both: %+v", d)
	}
	q.Server = "com.example/unknown"
	if d := s.Decide(&q); d.Effect != access.Allow || d.Reason != access.NotListed {
		t.Errorf("not listed, and allowed: %+v", d)
	}
	q.Server = "com.example/own"
	for name, next := range map[string]access.Listing{ // after it, the list that approved it counts no more
		"deleted":       {Name: servers[0].Name, Withdrawn: url, Deleted: true},
		"in quarantine": {Name: servers[0].Name, Withdrawn: url, Quarantined: true},
	} {
		if d := s.With([]access.Listing{next}).Decide(&q); d.Reason == access.ToolChanged || name == "in quarantine" && d.Reason != access.Quarantined {
			t.Errorf("%s: %+v", name, d)
		}
	}
	servers[0].Tools = append(servers[0].Tools, toolList("2", "q", 3, true, other))
	if d := s.With(servers[:1]).Decide(&q); d.Effect != access.Allow {
		t.Errorf("approved again: %+v", d)
	}
}

// TestSeenTools: a tool of a list that passes is compared by its mark (contract W-8).
func TestSeenTools(t *testing.T) {
	t.Parallel()
	person := ada(t)
	get := tool("get", "a", 0)
	s := access.Compile(access.Options{Default: access.Allow, OnChange: toolserver.DenyCalls}, nil, []access.Listing{
		{Name: mustName(t, "com.example/weather"), Tools: []access.ToolList{toolList("1", "p", 0, true, get)}}, {Name: mustName(t, "com.example/mail")},
	})
	for _, c := range []struct {
		server string
		shown  toolserver.Tool
		want   access.Seen
		effect access.Effect
	}{
		{"com.example/weather", get, access.Approved, access.Allow}, {"com.example/weather", tool("get", "b", 0), access.Unapproved, access.Deny},
		{"com.example/weather", tool("x", "", 0), access.Unapproved, access.Deny}, {"com.example/weather", toolserver.Tool{Name: "get"}, access.Unapproved, access.Deny},
		{"com.example/mail", get, access.Unreviewed, access.Allow}, {"com.example/unknown", get, access.Unreviewed, access.Deny},
	} {
		call := access.NewCall("tools/call", c.shown.Name)
		call.Mark = func() toolserver.Mark { return c.shown.Mark }
		d := s.Decide(&access.Question{Subject: &person, Server: c.server, Call: call, At: noon})
		if got := s.See(c.server, &call); got != c.want || d.Effect != c.effect {
			t.Errorf("%+v: %s, %+v", c, got, d)
		}
	}
}

// TestPermitsAndUsagesOfTools: what a person could do is what the decisions about each tool allow.
func TestPermitsAndUsagesOfTools(t *testing.T) {
	t.Parallel()
	person := ada(t)
	get := tool("get", "", toolserver.ReadOnly)
	shown := tool("get", "other", toolserver.ReadOnly)
	approved, changed := toolList("1", "p", 0, true, get), toolList("1", "p", 1, false, shown)
	for _, c := range []struct {
		rule   rule
		lists  []access.ToolList
		permit bool
		words  string
	}{
		{rule{"hints": list("readOnly")}, []access.ToolList{approved}, true, "May call read-only tools."},
		{rule{"hints": list("readOnly")}, []access.ToolList{approved, changed}, false,
			"May not call the tools get, which are not as they were approved. May call read-only tools."},
		{rule{"hints": list("readOnly")}, nil, false, "May call read-only tools."},
		{rule{"hints": list("destructive", "not:idempotent")}, nil, true, "May call tools that are destructive and not idempotent."},
		{rule{"hints": list("destructive")}, []access.ToolList{approved}, false, "May call destructive tools."},
		{rule{"tools": list("g*", "x"), "hints": list("readOnly")}, []access.ToolList{approved}, true, "May call those of the tools g* and x that are read-only."},
		{rule{"tools": list("h*"), "hints": list("readOnly")}, []access.ToolList{approved}, false, "May call those of the tools h* that are read-only."},
		{rule{"tools": list("g*")}, []access.ToolList{approved}, true, "May call the tool g*."},
		{rule{"tools": list("h*")}, []access.ToolList{approved}, false, "May call the tool h*."},
		{rule{"hints": list("readOnly"), "methods": list("other")}, []access.ToolList{approved}, false, ""},
	} {
		s := access.Compile(access.Options{OnChange: toolserver.DenyCalls}, []access.Rule{mustRule(t, c.rule)},
			[]access.Listing{{Name: mustName(t, "com.example/weather"), Tools: c.lists}})
		_, permit := s.Permits(&person, mustName(t, "com.example/weather"), netip.Addr{}, noon)
		page, _ := s.Usages(&person, noon, "", 10)
		words := ""
		for _, u := range page {
			words += strings.Join(u.Lines(), " ")
		}
		if permit != c.permit || words != c.words {
			t.Errorf("%v with %d lists: permitted %v, %q", c.rule, len(c.lists), permit, words)
		}
	}
}

// TestSnapshotsOfTools: after any changes of lists, a snapshot is as one that is made of the servers as they are.
func TestSnapshotsOfTools(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	c := chance{rand.New(rand.NewPCG(seed, 9))}
	s := access.Compile(access.Options{OnChange: toolserver.DenyCalls}, nil, nil)
	now := map[string]access.Listing{}
	for range 500 {
		l := access.Listing{Name: mustName(t, c.server()), Tools: c.lists()}
		now[l.Name.String()] = l
		s = s.With([]access.Listing{l})
		for name, l := range now {
			for _, tool := range []string{"t", "tu", "u", "v"} {
				q := access.Question{Subject: &access.Subject{}, Server: name, Call: access.NewCall("tools/call", tool), At: noon}
				if got := s.Decide(&q).Reason == access.ToolChanged; got != naiveRefuses(l.Tools, tool) {
					t.Fatalf("seed %d: %s of %+v is refused: %v", seed, tool, l, got)
				}
			}
		}
	}
}

// BenchmarkHints decides calls among 10,000 rules: without hints, of which only those that do not match have
// some, and of which also the one that decides has some.
func BenchmarkHints(b *testing.B) {
	var tools []toolserver.Tool
	for i := range 100 {
		tools = append(tools, tool(fmt.Sprintf("tool_%d", i), "", toolserver.ReadOnly))
	}
	subject := access.NewSubject(access.Member{
		Kind: access.Person, ID: "ada@example.com", Trust: trustlevel.FullTrust,
		Groups: []access.Group{{Provider: "other", Name: "g1"}, {Provider: "other", Name: "g3"}},
	})
	server := access.Listing{Name: mustName(b, "com.example/weather"), Tools: []access.ToolList{toolList("1", "p", 0, true, tools...)}}
	for name, c := range map[string]struct{ others, last audit.Value }{
		"none": {}, "others": {list("destructive"), nil}, "all": {list("destructive"), list("readOnly")},
	} {
		rules := []access.Rule{mustRule(b, audit.Details{"name": audit.Text("last"), "order": audit.Number(10_000), "hints": c.last})}
		for i := range 9_999 {
			r := audit.Details{"name": audit.Text(fmt.Sprint("r", i)), "order": audit.Number(i % 100), "subjects": list(fmt.Sprintf("group:acme/g%d", i%1000))}
			if i%2 == 0 && c.others != nil {
				r["subjects"], r["hints"] = list("everyone"), c.others
			}
			rules = append(rules, mustRule(b, r))
		}
		s := access.Compile(access.Options{}, rules, []access.Listing{server})
		q := access.Question{Subject: &subject, Server: "com.example/weather", Call: access.NewCall("tools/call", "tool_77"), At: noon}
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
