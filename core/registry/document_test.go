package registry

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/test/must"
)

var update = flag.Bool("update", false, "renew the golden files")

// TestBadDocuments reads files that are named after their defect. testdata/bad.golden has the
// issues of each.
func TestBadDocuments(t *testing.T) {
	t.Parallel()
	var said strings.Builder
	for name, body := range testFiles(t, "bad") {
		draft, err := ParseDraft(body)
		if err != nil {
			t.Errorf("%s: ParseDraft = %v, want none", name, err)
			continue
		}
		if _, err := draft.Document(); fault.KindOf(err) != fault.Invalid || codeOf(err) != CodeRules {
			t.Errorf("%s: Document = %v, want a fault with code %s", name, err, CodeRules)
		}
		fmt.Fprintf(&said, "%s\n", name)
		for _, issue := range draft.Issues() {
			fmt.Fprintf(&said, "  %s %s %s [%s] %s\n", issue.Severity, issue.Type, issue.Path, issue.Reference,
				issue.Message)
		}
	}
	checkGolden(t, "testdata/bad.golden", said.String())
}

func TestGoodDocuments(t *testing.T) {
	t.Parallel()
	var said strings.Builder
	for name, body := range testFiles(t, "good") {
		draft, err := ParseDraft(body)
		if err != nil {
			t.Errorf("%s: ParseDraft = %v, want none", name, err)
			continue
		}
		doc, err := draft.Document()
		if err != nil {
			t.Errorf("%s: Document = %v, want none", name, err)
			continue
		}
		if !sameJSON(t, doc.Bytes(), body) {
			t.Errorf("%s: Bytes = %s, which is not equal to what was sent", name, doc.Bytes())
		}
		for _, issue := range draft.Issues() {
			fmt.Fprintf(&said, "%s: %s %s %s [%s] %s\n", name, issue.Severity, issue.Type, issue.Path, issue.Reference,
				issue.Message)
		}
	}
	checkGolden(t, "testdata/good.golden", said.String())
}

func TestMalformedBodies(t *testing.T) {
	t.Parallel()
	for name, body := range testFiles(t, "malformed") {
		_, err := ParseDraft(body)
		if fault.KindOf(err) != fault.Invalid || codeOf(err) == CodeRules {
			t.Errorf("%s: ParseDraft = %v, want a fault of kind Invalid without code", name, err)
		}
	}
	wide := `{"_meta":[` + strings.Repeat("1,", maxValues) + `1]}`
	if _, err := ParseDraft([]byte(wide)); fault.KindOf(err) != fault.Invalid {
		t.Errorf("too many values: ParseDraft = %v, want a fault of kind Invalid", err)
	}
}

func TestDocumentReturnsItsProperties(t *testing.T) {
	t.Parallel()
	doc := mustDocument(t, `{"name":"com.example/weather","description":"d","version":"v1","packages":[
		{"registryType":"mcpb","registryBaseUrl":"https://example.com","identifier":"https://example.com/a","version":"2","fileSha256":"`+strings.Repeat("a", 64)+`","transport":{"type":"stdio"}},
		{"registryType":"oci","identifier":"b","version":null,"transport":{"type":"stdio"}}],
		"remotes":[{"type":"sse","url":"HTTPS://Example.COM:443/A"},{"type":"streamable-http","url":"https://example.com/A"},{"type":"sse","url":"https://example.com/a"}]}`)
	if doc.Name().String() != "com.example/weather" || doc.Version().String() != "v1" {
		t.Errorf("Name, Version = %s, %s", doc.Name(), doc.Version())
	}
	packages := []PackageRef{
		{"mcpb", "https://example.com", "https://example.com/a", "2", strings.Repeat("a", 64)},
		{"oci", "", "b", "", ""},
	}
	if !slices.Equal(doc.Packages(), packages) {
		t.Errorf("Packages = %+v, want %+v", doc.Packages(), packages)
	}
	if want := []RemoteURL{"https://example.com/A", "https://example.com/a"}; !slices.Equal(doc.Remotes(), want) {
		t.Errorf("Remotes = %q, want %q", doc.Remotes(), want)
	}
}

func TestDocumentKeepsItsText(t *testing.T) {
	t.Parallel()
	sent := "{ \"version\" : \"1\",\n\"name\":\"com.example\\/weather\", \"title\":null, \"description\":\"<&>\u2028\\ud83d\\ude00\", \"_meta\":{\"com.example/n\":[1.50, 1E400, 12345678901234567890]}}"
	want := "{\"version\":\"1\",\"name\":\"com.example\\/weather\",\"title\":null,\"description\":\"<&>\u2028\\ud83d\\ude00\",\"_meta\":{\"com.example/n\":[1.50,1E400,12345678901234567890]}}"
	doc := mustDocument(t, sent)
	if string(doc.Bytes()) != want {
		t.Errorf("Bytes = %s, want %s", doc.Bytes(), want)
	}
	if doc.Name().String() != "com.example/weather" {
		t.Errorf("Name = %s, want the escape resolved", doc.Name())
	}
}

func TestManyIssuesAreBounded(t *testing.T) {
	t.Parallel()
	draft, err := ParseDraft([]byte(`{"icons":[` + strings.Repeat(`{"x":1},`, 20_000) + `{}]}`))
	must.Succeed(t, err)
	issues := draft.Issues()
	if len(issues) != maxIssues+1 || !strings.Contains(issues[maxIssues].Message, "more issues") {
		t.Errorf("there are %d issues, the last %+v; want %d and one that counts the rest", len(issues),
			issues[len(issues)-1], maxIssues)
	}
	_, err = draft.Document()
	if n := len(err.Error()); n > 20_000 || !strings.Contains(err.Error(), "more") {
		t.Errorf("the sentence has %d bytes, want it bounded", n)
	}
}

func TestManyWarningsRefuseNothing(t *testing.T) {
	t.Parallel()
	one := `{"registryType":"npm","identifier":"a","transport":{"type":"stdio"},"runtimeArguments":[{"type":"positional","value":"x"}]}`
	doc := `{"name":"com.example/a","description":"d","version":"1","packages":[` + strings.Repeat(one+",",
		maxIssues+10) + one + `]}`
	draft, err := ParseDraft([]byte(doc))
	must.Succeed(t, err)
	if issues := draft.Issues(); len(issues) != maxIssues || issues[maxIssues-1].Severity != SeverityWarning {
		t.Errorf("there are %d issues, want %d, all warnings", len(issues), maxIssues)
	}
	if _, err := draft.Document(); err != nil {
		t.Errorf("Document = %v, want none", err)
	}
}

func TestRemoteURL(t *testing.T) {
	t.Parallel()
	for sent, want := range map[string]RemoteURL{
		"https://example.com":                  "https://example.com",
		"HTTPS://EXAMPLE.com:443":              "https://example.com",
		"http://Example.com:80/A?B=c#D":        "http://example.com/A?B=c#D",
		"http://example.com:443/":              "http://example.com:443/",
		"https://example.com:8443/":            "https://example.com:8443/",
		"https://example.com:/":                "https://example.com/",
		"https://User:Pass@Example.com:443/x":  "https://User:Pass@example.com/x",
		"https://[2001:DB8::1]:443/x":          "https://[2001:db8::1]/x",
		"https://Example.com?Q=https://A.B:80": "https://example.com?Q=https://A.B:80",
		"{Origin}/Path":                        "{Origin}/Path",
		"{scheme}://Host/":                     "{scheme}://Host/",
	} {
		if got := ComparableURL(sent); got != want {
			t.Errorf("remoteURL(%s) = %s, want %s", sent, got, want)
		}
	}
}

func mustDocument(t *testing.T, body string) Document {
	t.Helper()
	draft, err := ParseDraft([]byte(body))
	must.Succeed(t, err)
	doc, err := draft.Document()
	must.Succeed(t, err)
	return doc
}

// testFiles yields the files of a folder of testdata in the order of their names.
func testFiles(t testing.TB, folder string) func(func(string, []byte) bool) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", folder, "*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("testdata/%s holds %d files: %v", folder, len(paths), err)
	}
	return func(yield func(string, []byte) bool) {
		for _, path := range paths {
			body, err := os.ReadFile(path)
			must.Succeed(t, err)
			if !yield(strings.TrimSuffix(filepath.Base(path), ".json"), body) {
				return
			}
		}
	}
}

func checkGolden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		must.Succeed(t, os.WriteFile(path, []byte(got), 0o600))
		return
	}
	want, err := os.ReadFile(path)
	must.Succeed(t, err)
	if got == string(want) {
		return
	}
	gotLines, wantLines := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	for i := range min(len(gotLines), len(wantLines)) {
		if gotLines[i] != wantLines[i] {
			t.Fatalf("%s:%d: got %q, want %q (renew with -update)", path, i+1, gotLines[i], wantLines[i])
		}
	}
	t.Fatalf("%s: got %d lines, want %d (renew with -update)", path, len(gotLines), len(wantLines))
}

func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	return reflect.DeepEqual(decodeJSON(t, a), decodeJSON(t, b))
}

func decodeJSON(t *testing.T, text []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	must.Succeed(t, d.Decode(&v))
	return v
}

func codeOf(err error) fault.Code {
	if f, ok := fault.As(err); ok {
		return f.Code
	}
	return ""
}
