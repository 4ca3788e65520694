package access_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/test/must"
)

// texts returns the given number of different texts.
func texts(n int, format string) audit.List {
	list := make(audit.List, n)
	for i := range list {
		list[i] = audit.Text(fmt.Sprintf(format, i))
	}
	return list
}

func list(all ...string) audit.List { return audit.Texts(all) }

// fieldsOf returns the fields of a rule with some changed; nil removes one.
func fieldsOf(changes audit.Details) audit.Details {
	f := audit.Details{
		"name": audit.Text("r"), "order": audit.Number(10), "effect": audit.Text("allow"), "subjects": list("everyone"),
		"servers": list("com.example/*"),
	}
	for name, v := range changes {
		if f[name] = v; v == nil {
			delete(f, name)
		}
	}
	return f
}

func mustRule(t testing.TB, changes audit.Details) access.Rule {
	t.Helper()
	r, err := access.ParseRule(fieldsOf(changes))
	must.Succeed(t, err)
	return r
}

// TestBoundsOfRules tries both sides of each bound of contract Z-2.
func TestBoundsOfRules(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		field string
		value audit.Value
		wrong string // the field that the message begins with; empty if the rule is right
	}{
		{"name", audit.Text(strings.Repeat("a", 40)), ""}, {"name", audit.Text(strings.Repeat("a", 41)), "name"},
		{"name", audit.Text("A"), "name"}, {"name", nil, "name"},
		{"order", audit.Number(0), ""}, {"order", audit.Number(10_000), ""}, {"order", audit.Number(10_001), "order"},
		{"order", audit.Number(-1), "order"}, {"order", audit.Number(1.5), "order"}, {"order", nil, "order"},
		{"effect", audit.Text("deny"), ""}, {"effect", audit.Text("challenge"), "effect"}, {"effect", nil, "effect"},
		{"subjects", nil, "subjects"}, {"subjects", texts(100, "person:p%d@example.com"), ""},
		{"subjects", texts(101, "person:p%d@example.com"), "subjects"}, {"subjects", list("anyone", "anyone"), "subjects[1]"},
		{"subjects", list("anyone", "someone"), "subjects[1]"},
		{"servers", nil, "servers"}, {"servers", texts(100, "com.example/s%d"), ""},
		{"servers", texts(101, "com.example/s%d"), "servers"}, {"servers", list("*"), ""},
		{"servers", list("com.*/x"), "servers[0]"}, {"servers", list("com.example"), "servers[0]"},
		{"methods", list("tools/call", "tools/list", "prompts/*", "resources/*", "other"), ""},
		{"methods", list("tools/*"), "methods[0]"}, {"methods", list("initialize"), "methods[0]"},
		{"tools", texts(500, "tool%d"), ""}, {"tools", texts(501, "tool%d"), "tools"}, {"tools", list("get_*", "*"), ""},
		{"tools", list("a*b"), "tools[0]"}, {"tools", list("**"), "tools[0]"}, {"tools", list(""), "tools[0]"},
		{"hints", list("readOnly", "not:destructive", "idempotent", "not:openWorld"), ""}, {"hints", list("safe"), "hints[0]"},
		{"hints", list("readOnly", "not:readOnly"), "hints"}, {"hints", list("readOnly", "destructive"), "hints"},
		{"hints", list("idempotent", "idempotent"), "hints[1]"}, {"hints", list("not:not:readOnly"), "hints[0]"},
		{"minTrust", audit.Text("LIMITED_TRUST"), ""}, {"minTrust", audit.Text("TOKEN"), "minTrust"},
		{"networks", list("10.0.0.0/8", "2001:db8::/32"), ""}, {"networks", list("10.0.0.1"), "networks[0]"},
		{"networks", texts(101, "10.0.%d.0/24"), "networks"},
		{"clients", list("vscode", "https://vscode.example/client.json"), ""}, {"clients", list("http://x.example/c"), "clients[0]"},
		{"clients", texts(50, "c%d"), ""}, {"clients", texts(51, "c%d"), "clients"}, {"clients", list("a", ""), "clients[1]"},
		{"clients", list("https://c.example/" + strings.Repeat("x", 2030)), ""}, {"clients", list("c", "c"), "clients[1]"},
		{"clients", list("https://c.example/" + strings.Repeat("x", 2031)), "clients[0]"}, {"clients", list("VS Code"), "clients[0]"},
		{"clients", list("com.example_IDE~2"), ""}, {"clients", list(strings.Repeat("c", 201)), "clients[0]"},
		{"expiresAt", audit.Text("2027-01-01T00:00:00Z"), ""}, {"expiresAt", audit.Text("tomorrow"), "expiresAt"},
		{"mode", audit.Text("observe"), ""}, {"mode", audit.Text("off"), "mode"},
	} {
		_, err := access.ParseRule(fieldsOf(audit.Details{c.field: c.value}))
		f, _ := fault.As(err)
		if c.wrong == "" && err != nil || c.wrong != "" && (f == nil || f.Kind != fault.Invalid ||
			f.Field != c.wrong || !strings.HasPrefix(f.Message, c.wrong+" ")) {
			t.Errorf("%s %.60v: %v, want an error of %q", c.field, c.value, err, c.wrong)
		}
	}
	_, err := access.ParseRule(fieldsOf(audit.Details{"effect": audit.Text("deny"), "minTrust": audit.Text("FULL_TRUST")}))
	if f, _ := fault.As(err); f == nil || f.Field != "minTrust" {
		t.Errorf("a rule that denies has a minTrust: %v", err)
	}
}

func TestSelectors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"person:Ada@Example.com": "person:ada@example.com", "group:acme/dev": "group:acme/dev",
		"group:acme/a/b c": "group:acme/a/b c", "grant:publish": "grant:publish", "grant:operate": "grant:operate",
		"service:ci-1": "service:ci-1", "everyone": "everyone", "anyone": "anyone",
		"": "", "person:": "", "person:ada": "", "group:acme": "", "group:acme/": "", "group:ACME/dev": "", "grant:": "",
		"grant:delete": "", "service:": "", "service:CI": "", "everyone:": "", "anyone:x": "", "Anyone": "", "jwt:x": "",
		"person:a@b.example, c@d.example": "", "person:ada@example.com\x00": "",
	} {
		got, err := access.ParseSelector(text)
		if (err == nil) != (want != "") || err == nil && got.String() != want {
			t.Errorf("%q is %q, %v, want %q", text, got, err, want)
		}
	}
}

// TestRulesRoundTrip reads what Fields writes.
func TestRulesRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		some := func(name string, all ...string) audit.Value {
			return audit.Texts(rapid.SliceOfNDistinct(rapid.SampledFrom(all), 1, -1, rapid.ID[string]).Draw(t, name))
		}
		rule, err := access.ParseRule(fieldsOf(audit.Details{
			"order": audit.Number(rapid.IntRange(0, 10_000).Draw(t, "order")), "methods": some("methods", "tools/call", "other"),
			"subjects": some("subjects", "anyone", "group:acme/dev", "person:a@b.example"), "tools": some("tools", "a", "b*"),
			"hints":    some("hints", "not:readOnly", "not:destructive", "openWorld", "idempotent"),
			"clients":  some("clients", "c", "https://c.example/client.json"),
			"networks": some("networks", "10.1.0.0/16", "::/0"), "mode": audit.Text("observe"),
			"minTrust": audit.Text("UNVERIFIED"), "expiresAt": audit.Text("2027-01-01T00:00:00.25+01:00"),
		}))
		must.Succeed(t, err)
		again, err := access.ParseRule(rule.Fields())
		if err != nil || !reflect.DeepEqual(again, rule) {
			t.Fatalf("%+v is read as %+v, %v", rule, again, err)
		}
	})
}
