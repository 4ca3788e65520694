package statefile_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/tollgate-dev/tollgate/adapters/rest/statefile"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/jsonvalue"
	"github.com/tollgate-dev/tollgate/core/registry/declaring"
	"github.com/tollgate-dev/tollgate/test/must"
)

func read(t *testing.T, text string, asYAML bool) declaring.Node {
	t.Helper()
	n, err := statefile.Read([]byte(text), "", asYAML)
	must.Succeed(t, err)
	return n
}

// TestFormatsAgree checks that the same state in both formats is the same document.
func TestFormatsAgree(t *testing.T) {
	yaml := "apiVersion: tollgate.dev/v1\nkind: State\nviews:\n" +
		"  - name: data # a comment\n    include: &i [com.example/*, \"org.example/*\"]\n    exclude: *i\n" +
		"policies:\n  - {expiresAt: 2027-01-01T00:00:00Z, claims: {count: \"1\", on: 'true'}}\n" +
		"mirrors: [{name: up, lenient: True, interval: 30m}, null]\nwebhooks:\n"
	json := `{"apiVersion": "tollgate.dev/v1", "kind": "State", "views": [{"name": "data",
		"include": ["com.example/*", "org.example/*"], "exclude": ["com.example/*", "org.example/*"]}],
		"policies": [{"expiresAt": "2027-01-01T00:00:00Z", "claims": {"count": "1", "on": "true"}}],
		"mirrors": [{"name": "up", "lenient": true, "interval": "30m"}, null], "webhooks": null}`
	one, other := read(t, yaml, true), read(t, json, false)
	if got, want := jsonOf(&one), jsonOf(&other); got != want {
		t.Errorf("YAML is\n%s\nand JSON\n%s", got, want)
	}
	if n := one.Members[2].Value.Items[0].Members[0]; n.Line != 4 || n.Column != 5 {
		t.Errorf("the name of the view is at %+v", n.Position)
	}
}

// TestWrong has files that are refused, with the message.
func TestWrong(t *testing.T) {
	deep := strings.Repeat("[", 40) + strings.Repeat("]", 40)
	bomb := "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
	for c := 'b'; c <= 'h'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c, ", c-1), 10), ", "))
	}
	cases := map[string]struct {
		text   string
		asYAML bool
		want   string
	}{
		"an empty file":             {"", true, "is empty"},
		"an empty body":             {" \n", false, "is empty"},
		"no YAML":                   {"a: [", true, "is not YAML"},
		"no JSON":                   {`{"a":}`, false, "is not valid JSON"},
		"more than JSON":            {`{} {}`, false, "is not valid JSON"},
		"YAML as JSON":              {"a: b", false, "is not valid JSON"},
		"two documents":             {"a: b\n---\nc: d\n", true, "must be one YAML document (line 2, column 1)"},
		"a key twice":               {"views:\n  - name: a\n    name: b\n", true, "views[0].name occurs twice in the same object (line 3, column 5)"},
		"a key twice in JSON":       {`{"views": [{}, {"name": 1, "name": 2}]}`, false, "views[1].name occurs twice in the same object"},
		"a merge":                   {"a: &a {b: c}\nd:\n  <<: *a\n", true, "d.<< must be a name (line 3, column 3)"},
		"a list as a key":           {"[a]: b", true, "must be a name"},
		"a tag":                     {"a: !!binary aGk=", true, "a has the tag !!binary, which a state does not have (line 1, column 4)"},
		"too deep":                  {deep, true, "must not be nested deeper than 16 levels"},
		"too deep in JSON":          {deep, false, "must not be nested deeper than 16 levels"},
		"aliases that grow":         {bomb, true, "must not have more than 300000 values, also by aliases"},
		"too many values":           {"a: [" + strings.Repeat("a,", 300_000) + "]", true, "must not have more than 300000 values"},
		"too many values in JSON":   {"[" + strings.Repeat("1,", 300_000) + "1]", false, "must not have more than 300000 values"},
		"too many lines":            {strings.Repeat("? a\n", 300_000+1), true, "must not have more than 300000 values"},
		"an alias of what it is in": {"a: &a [*a]", true, ""},
		"no UTF-8":                  {"a: \xff", true, "is not valid UTF-8"},
		"too large":                 {strings.Repeat(" ", statefile.MaxBytes+1), true, "the file is larger than 4194304 bytes"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := statefile.Read([]byte(c.text), "", c.asYAML)
			if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Read = %v, want %q", err, c.want)
			}
		})
	}
	if _, err := statefile.Read([]byte("a: b\na: c"), "one.yaml", true); err == nil ||
		!strings.Contains(err.Error(), "(one.yaml, line 2, column 1)") {
		t.Errorf("the error names no file: %v", err)
	}
}

func TestResolve(t *testing.T) {
	getenv := func(name string) string { return map[string]string{"SECRET": "s1"}[name] }
	readFile := func(name string) ([]byte, error) {
		if name == "key" {
			return []byte("s2\n"), nil
		}
		return nil, fs.ErrNotExist
	}
	n := read(t, `{"w": [{"secret": {"env": "SECRET"}}, {"secret": {"file": "key"}}], "claims": {"env": "SECRET"}}`, false)
	must.Succeed(t, statefile.Resolve(&n, getenv, readFile))
	want := `{"claims":{"env":"SECRET"},"w":[{"secret":"s1"},{"secret":"s2"}]}`
	if got := jsonOf(&n); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, text := range []string{`{"a": {"env": "MISSING"}}`, `{"a": [{"file": "missing"}]}`} {
		n := read(t, text, false)
		if err := statefile.Resolve(&n, getenv, readFile); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v, want fault.Invalid", text, err)
		}
	}
}

func TestMerge(t *testing.T) {
	merged := statefile.Merge([]declaring.Node{
		read(t, `{"kind": "State", "views": ["1"], "mirrors": ["2"]}`, false), read(t, `{"kind": "State", "views": ["3"], "grants": ["4"]}`, false),
	})
	want := `{"grants":["4"],"kind":"State","mirrors":["2"],"views":["1","3"]}`
	if got := jsonOf(&merged); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	other := statefile.Merge([]declaring.Node{
		read(t, `{"kind": "State", "views": []}`, false), read(t, `{"kind": "Other", "views": "x"}`, false),
	})
	if got := jsonOf(&other); got != `{"kind":"Other","views":"x"}` {
		t.Errorf("what must be refused is hidden: %s", got)
	}
}

// FuzzRead checks that what is read is written as both formats and read again as the same.
func FuzzRead(f *testing.F) {
	for _, text := range []string{
		`{"a": "\ud83d\ude00", "b": [true, null, 1.5, {"c": "2027-01-01"}]}`, "a: &x [yes, no, ~, 0x1f, .inf]\nb: *x\n",
		"a: |\n  text\n  more\nb: >-\n  folded\n", "? a\n: b\n", "a: !!str 1\n\"<<\": b\n", "- - a\n  - b\n", "a: \"\\u0085\\x7f\"\n",
		"a: &a [*a]", "%YAML 1.2\n---\na: b\n...\n",
	} {
		f.Add([]byte(text), true)
		f.Add([]byte(text), false)
	}
	f.Fuzz(func(t *testing.T, text []byte, asYAML bool) {
		n, err := statefile.Read(text, "", asYAML)
		if err != nil {
			if !fault.Is(err, fault.Invalid) {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		again, err := statefile.Read([]byte(jsonOf(&n)), "", false)
		if err != nil || jsonOf(&again) != jsonOf(&n) {
			t.Fatalf("%q: written and read again %+v, %v, at first %+v", text, again, err, n)
		}
		written, err := yaml.Dump(valueOf(&n))
		if err != nil {
			t.Fatal(errors.Join(err, fmt.Errorf("%q", text)))
		}
		again, err = statefile.Read(written, "", true)
		if err != nil || jsonOf(&again) != jsonOf(&n) {
			t.Fatalf("%q: YAML is %q", text, written)
		}
	})
}

// valueOf returns the value of a document, as an export has it.
func valueOf(n *declaring.Node) jsonvalue.Value {
	switch n.Form {
	case declaring.Text:
		return jsonvalue.Text(n.Text)
	case declaring.Flag:
		return jsonvalue.Flag(n.Text == "true")
	case declaring.Number:
		return jsonvalue.Number(7) // a state has no numbers: the formats may write them differently
	case declaring.List:
		list := jsonvalue.List{}
		for i := range n.Items {
			list = append(list, valueOf(&n.Items[i]))
		}
		return list
	case declaring.Object:
		object := jsonvalue.Object{}
		for i := range n.Members {
			object[n.Members[i].Name] = valueOf(&n.Members[i].Value)
		}
		return object
	}
	return nil
}

func jsonOf(n *declaring.Node) string {
	text, _ := json.Marshal(valueOf(n)) // never fails
	return string(text)
}
