package allowlist_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/allowlist"
)

// ownReference is a reference that a compiler or a snippet makes itself, for com.example/a.
var ownReference = regexp.MustCompile(
	`\$\{(?:COM_EXAMPLE_A(?:_[A-Z0-9]+)*(?::-)?|env:COM_EXAMPLE_A(?:_[A-Z0-9]+)*|input:a-[A-Za-z0-9_-]*)\}|` +
		`\{env:COM_EXAMPLE_A(?:_[A-Z0-9]+)*\}`)

// FuzzDocuments compiles documents of any content. No document may make a client replace a text by
// something that its publisher chose.
func FuzzDocuments(f *testing.F) {
	for _, properties := range []string{
		remotes(`{"type":"sse","url":"https://{a}.example.com/","variables":{"a":{"default":"b"}},"headers":[{"name":"X","value":"{b} $c"}]}`),
		packages(`{"registryType":"oci","identifier":"a/b","version":"1","transport":{"type":"stdio"},"runtimeArguments":[{"type":"named","name":"-e","value":"{x}","isRequired":true}]}`),
		packages(`{"registryType":"nuget","identifier":"A","packageArguments":[{"type":"positional","valueHint":"$x"}],"environmentVariables":[{"name":"E","isSecret":true}]}`),
	} {
		f.Add(newRecord(f, "com.example/a", "1.0.0", properties).Document)
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		r := newRecord(t, "com.example/a", "1.0.0", "")
		r.Document = document
		for _, format := range allowlist.Formats() {
			list := compile(t, format, []registry.Record{r}, []registry.Record{r})
			for _, d := range list.Definitions {
				checkDefinition(t, d, "$")
			}
			if len(list.Denied) != 0 || len(list.Allowed)+len(list.Definitions)+len(list.Skipped) == 0 {
				t.Errorf("%s: %+v", format, list)
			}
		}
		for _, c := range allowlist.Clients() {
			if s, err := allowlist.NewSnippet(r, c.Client); err == nil {
				mark := "$"
				if c.Client == "opencode" {
					mark = "${"
				}
				checkDefinition(t, s.Definition, mark)
			}
		}
	})
}

// checkDefinition wants no reference in a definition but our own. One begins with a mark.
func checkDefinition(t *testing.T, d allowlist.Definition, marks string) {
	t.Helper()
	var texts []string
	if d.Remote != nil {
		texts = append(texts, d.Remote.URL)
		for _, v := range d.Remote.Headers {
			texts = append(texts, v.Name, v.Value)
		}
	}
	if d.Package != nil {
		texts = slices.Concat(texts, d.Package.Command, d.Package.RuntimeArguments, d.Package.PackageArguments)
		for _, v := range d.Package.Environment {
			texts = append(texts, v.Name, v.Value)
		}
	}
	for _, text := range texts {
		if rest := ownReference.ReplaceAllString(text, ""); strings.ContainsAny(rest, marks) {
			t.Errorf("%q has a reference of the publisher", text)
		}
	}
}
