package registry_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/test/must"
)

func placesOf(t rapid.TB, text string) (places []string) {
	t.Helper()
	d, err := registry.ParseDraft([]byte(text))
	must.Succeed(t, err)
	for _, i := range d.PlacedIssues([]byte(text)) {
		if i.Severity == registry.SeverityWarning {
			continue
		}
		places = append(places, fmt.Sprintf("%d:%d %s", i.Line, i.Column, i.Path))
	}
	return places
}

func TestPlacedIssues(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"compact": {`{"name":"x","description":"A.","version":"1.0.0"}`, []string{`1:9 name`}},
		"lines, wide characters and escapes": {
			"{\n  \"name\": \"com.example/a\",\n  \"description\": \"日本 \\\"x\\\\\",  \"version\": \"latest\",\r\n\t\"title\"  :\n\n   7\n}",
			[]string{"3:42 version", "6:4 title"},
		},
		"what is missing is missing in its object": {
			"{\n \"name\": \"com.example/a\", \"description\": \"A.\", \"version\": \"1.0.0\",\n \"packages\": [\n  {\"identifier\": \"a\",\n   \"transport\": {}}\n ]\n}",
			[]string{"4:3 packages[0].registryType", "5:17 packages[0].transport.type"},
		},
		"in the order of the text": {
			"{\n\"version\": 1,\n\"name\": 2\n}",
			[]string{"1:1 description", "2:12 version", "3:9 name"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := placesOf(t, c.text); !slices.Equal(got, c.want) {
				t.Errorf("the places are %q, want %q", got, c.want)
			}
		})
	}
}

// TestPlacesDoNotDependOnTheLayout formats a document in another way: each issue then is at the
// same value.
func TestPlacesDoNotDependOnTheLayout(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SampledFrom([]string{
			`{"name":7,"title":"ü\"\\","version":"","remotes":[{"type":"x"},{"url":"é"}],"x":{"a b":[1, 2]}}`,
			`{"packages":[{},{"registryType":3}],"name":"a/b","version":"1","description":""}`,
		}).Draw(t, "document")
		var spaced strings.Builder
		inString, escaped := false, false
		for _, c := range text {
			if !inString && strings.ContainsRune(`{}[]:,`, c) {
				spaced.WriteString(rapid.StringMatching(`[ \t\n\r]{0,3}`).Draw(t, "before"))
			}
			spaced.WriteRune(c)
			switch {
			case escaped:
				escaped = false
			case c == '\\':
				escaped = true
			case c == '"':
				inString = !inString
			}
			if !inString && strings.ContainsRune(`{}[]:,`, c) {
				spaced.WriteString(rapid.StringMatching(`[ \t\n\r]{0,3}`).Draw(t, "after"))
			}
		}
		other := strings.TrimLeft(spaced.String(), " \t\r\n")
		plain, moved := valuesAt(t, text), valuesAt(t, other)
		if !slices.Equal(plain, moved) {
			t.Fatalf("the values at the places are %q, want %q", moved, plain)
		}
	})
}

// valuesAt returns the issues with the compact JSON of the values at their places, sorted.
func valuesAt(t rapid.TB, text string) (values []string) {
	t.Helper()
	d, err := registry.ParseDraft([]byte(text))
	must.Succeed(t, err)
	lines := strings.Split(text, "\n")
	for _, i := range d.PlacedIssues([]byte(text)) {
		rest := string([]rune(lines[i.Line-1])[i.Column-1:]) + "\n" + strings.Join(lines[i.Line:], "\n")
		var value json.RawMessage
		if err := json.NewDecoder(strings.NewReader(rest)).Decode(&value); err != nil {
			t.Fatalf("%d:%d of %q is no value: %v", i.Line, i.Column, text, err)
		}
		var compact bytes.Buffer
		must.Succeed(t, json.Compact(&compact, value))
		values = append(values, i.Path+" "+compact.String())
	}
	slices.Sort(values)
	return values
}

func TestSyntaxErrorPlace(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]registry.Place{
		"":                         {Line: 1, Column: 1},
		"x":                        {Line: 1, Column: 1},
		"{\n  \"ü\": 1,\n  }":      {Line: 3, Column: 3},
		"{\"日本\" 1}":               {Line: 1, Column: 7},
		"{\"a\": 1} {":             {Line: 1, Column: 10},
		"{\n\"a\": tru}":           {Line: 2, Column: 9},
		"{\"a\": \"line\nbreak\"}": {Line: 1, Column: 12},
	} {
		if got, wrong := registry.SyntaxErrorPlace([]byte(text)); !wrong || got != want {
			t.Errorf("SyntaxErrorPlace(%q) = %+v, %t, want %+v", text, got, wrong, want)
		}
	}
	if _, wrong := registry.SyntaxErrorPlace([]byte(`{"a": 1}`)); wrong {
		t.Error("JSON has a syntax error")
	}
}

func TestRefusalPlace(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]registry.Place{
		"":                       {Line: 1, Column: 1},
		"{\n\"a\": x}":           {Line: 2, Column: 6},
		"{\n \"ü\": \"\xff\"} x": {Line: 2, Column: 8},
		"{\"a\": \"\\\\u0000\",\n \"b\\u0000\": 1}": {Line: 2, Column: 4},
		"{\"a\":\n\"\\ud83d\\ude00 \\ud83d\"}":      {Line: 2, Column: 15},
		" \n\t[1]":                                  {Line: 2, Column: 2},
	} {
		if _, err := registry.ParseDraft([]byte(text)); err == nil {
			t.Errorf("ParseDraft(%q) accepts it", text)
		}
		if got := registry.RefusalPlace([]byte(text)); got != want {
			t.Errorf("RefusalPlace(%q) = %+v, want %+v", text, got, want)
		}
	}
}

func FuzzPlacedIssues(f *testing.F) {
	f.Add([]byte(`{"name":"a"}`))
	f.Add([]byte("{\n\"name\": \"\\u00e9\\\"\", \"version\": []}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := registry.ParseDraft(text)
		if err != nil {
			lines := strings.Split(string(text), "\n")
			if p := registry.RefusalPlace(text); p.Line < 1 || p.Line > len(lines) || p.Column < 1 {
				t.Fatalf("%+v is not in the text", p)
			}
			return
		}
		lines := strings.Split(string(text), "\n")
		for _, i := range d.PlacedIssues(text) {
			if i.Line < 1 || i.Line > len(lines) || i.Column < 1 || i.Column > len([]rune(lines[i.Line-1])) {
				t.Fatalf("%d:%d is not in the text", i.Line, i.Column)
			}
		}
	})
}
