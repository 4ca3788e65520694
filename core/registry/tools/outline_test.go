package tools_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
	"github.com/tollgate-dev/tollgate/core/toolserver"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestTraits has the defaults of the specification of MCP for what a tool does not say.
func TestTraits(t *testing.T) {
	for annotations, want := range map[string]toolserver.Traits{
		`{}`:                       toolserver.DefaultTraits,
		`{"readOnlyHint":true}`:    toolserver.ReadOnly | toolserver.OpenWorld,
		`{"readOnlyHint":false}`:   toolserver.DefaultTraits,
		`{"openWorldHint":false}`:  toolserver.Destructive,
		`{"idempotentHint":true}`:  toolserver.DefaultTraits | toolserver.Idempotent,
		`{"destructiveHint":true}`: toolserver.DefaultTraits,
		`{"readOnlyHint":true,"destructiveHint":true,"idempotentHint":true,"openWorldHint":false}`: toolserver.ReadOnly | toolserver.Idempotent,
		`{"destructiveHint":false,"openWorldHint":false}`:                                          0,
	} {
		l, err := tools.Parse([]byte(`{"tools":[{"name":"a b","annotations":` + annotations + `}]}`))
		must.Succeed(t, err)
		got, err := tools.ParseOutline(l.Outline())
		if err != nil || len(got) != 1 || got[0].Name != "a b" || got[0].Traits != want {
			t.Errorf("%s: %+v, %v, want %d", annotations, got, err, want)
		}
	}
}

// TestOutlines: an outline has each tool of a list, with the mark that the tool alone has.
func TestOutlines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		drawn := drawnList(t)
		l, err := tools.Parse(encode(t, drawn))
		if err != nil {
			t.Fatal(err)
		}
		all, err := tools.ParseOutline(l.Outline())
		if err != nil || len(all) != len(l.Tools) {
			t.Fatalf("%q: %v", l.Outline(), err)
		}
		for _, d := range drawn {
			name := d["name"].(string)
			d["name"], d["_meta"] = "target_"+name, 7
			one := strings.TrimSuffix(strings.TrimPrefix(string(encode(t, []map[string]any{d})), `{"tools":[`), "]}")
			mark, err := tools.MarkOf([]byte(one), name)
			found := false
			for _, o := range all {
				found = found || o.Name == name && o.Mark == mark
			}
			if err != nil || !found {
				t.Fatalf("%s has the mark %x, %v", one, mark, err)
			}
		}
	})
}

// TestRefusedOutlines: what is no outline, and what has no mark.
func TestRefusedOutlines(t *testing.T) {
	line := strings.Repeat("0", 64) + "fa\n"
	for text, ok := range map[string]bool{"": true, line: true, line + line: true, line[1:]: false, "x" + line[1:]: false, line[:64] + "xa\n": false, line[:65] + "\n": false, line[:66]: false} {
		if _, err := tools.ParseOutline(text); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{
		`{`, `[]`, `7`, `{"name":"a","name":"b"}`, `{"name":"a","x":1e400}`, `{"name":"a","description":7}`, `{"name":"a","annotations":{"readOnlyHint":"yes"}}`,
		`{"name":"a","Description":"x"}`, `{"name":"a","inputſchema":{}}`, `{"name":"a","annotations":{"readonlyhint":true}}`,
		`{"name":"a","description":"` + strings.Repeat("x", tools.MaxTool) + `"}`,
	} {
		if mark, err := tools.MarkOf([]byte(text), "a"); !fault.Is(err, fault.Invalid) {
			t.Errorf("%.40s has the mark %x, %v", text, mark, err)
		}
	}
	if _, err := tools.MarkOf([]byte(`{"name":"a"}`), ""); !fault.Is(err, fault.Invalid) {
		t.Errorf("without a name: %v", err)
	}
}
