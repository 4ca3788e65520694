package mirror

import (
	"reflect"
	"testing"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/test/must"
)

func TestRefusals(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Refusals{
		"": nil, "document 12": {RuleDocument: 12}, "document 12, granted 3": {RuleGranted: 3, RuleDocument: 12},
	} {
		got, err := ParseRefusals(text)
		if err != nil || !reflect.DeepEqual(got, want) || got.String() != text {
			t.Errorf("ParseRefusals(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	for _, bad := range []string{"document", "document x", "document 0", " 1", "document 1,granted 2"} {
		if got, err := ParseRefusals(bad); !fault.Is(err, fault.Invalid) {
			t.Errorf("ParseRefusals(%q) = %v, %v, want fault.Invalid", bad, got, err)
		}
	}
	wantEqual(t, (Refusals{RuleRecord: 0}).String(), "", "no refusals")
}

// TestCheckName checks which names a mirror may not take (contract C-71).
func TestCheckName(t *testing.T) {
	t.Parallel()
	pattern := func(s string) registry.Pattern {
		p, err := registry.ParsePattern(s)
		must.Succeed(t, err)
		return p
	}
	var grants []registry.Grant
	for _, g := range []struct {
		action  registry.Action
		pattern string
	}{
		{registry.ActionPublish, "com.corp/*"}, {registry.ActionEdit, "com.edit/*"}, {
			registry.ActionPublish, "org.team*",
		}, {registry.ActionPublish, "com.one/x"},
		{registry.ActionPublish, "*"}, {registry.ActionReview, "com.review/*"}, {registry.ActionOperate, "*"},
	} {
		grants = append(grants, registry.Grant{Holder: "ada", Action: g.action, Pattern: pattern(g.pattern)})
	}
	p := NewProtection([]registry.Pattern{pattern("com.secret/*"), pattern("com.free/taken")}, grants)
	for _, c := range []struct {
		name    string
		want    Rule
		include []string
	}{
		{"com.secret/x", RuleReserved, nil},
		{"COM.Secret/x", RuleReserved, nil},
		{"com.secret/x", RuleReserved, []string{"com.secret/*", "com.secret/x"}},
		{"com.free/taken", RuleReserved, nil},
		{"com.free/other", "", nil},
		{"com.corp/x", RuleGranted, nil},
		{"COM.CORP/x", RuleGranted, nil},
		{"com.corp/x", RuleGranted, []string{"*"}},
		{"com.corp/x", RuleGranted, []string{"com.*"}},
		{"com.corp/x", "", []string{"com.*", "com.corp/*"}},
		{"com.corp/x", "", []string{"com.corp*"}},
		{"com.corp/x", "", []string{"com.corp/x"}},
		{"com.corp/x", RuleGranted, []string{"com.corp/y"}},
		{"COM.CORP/x", RuleGranted, []string{"com.corp/*"}},
		{"com.corp.sub/x", "", nil},
		{"com.edit/x", RuleGranted, nil},
		{"com.review/x", "", nil},
		{"org.team.a/x", RuleGranted, nil},
		{"org.team.a/x", RuleGranted, []string{"org.*"}},
		{"org.team.a/x", "", []string{"org.team*"}}, // as the grant says it
		{"com.one/x", RuleGranted, nil},
		{"com.one/y", "", nil},
	} {
		m, err := New(Draft{Name: "corp", URL: address, Include: c.include}, epoch)
		must.Succeed(t, err)
		name, err := registry.ParseName(c.name)
		must.Succeed(t, err)
		rule, err := m.CheckName(name, p)
		if rule != c.want || fault.Is(err, fault.Forbidden) != (c.want != "") {
			t.Errorf("CheckName(%s) with --include %q = %q, %v, want %q", c.name, c.include, rule, err, c.want)
		}
	}
}
