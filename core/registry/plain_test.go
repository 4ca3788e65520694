package registry

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/test/must"
)

// invisibleDefects are defects that readers do not see: each makes a wrong value from a right one.
var invisibleDefects = map[string]func(string) string{
	"a bell":                      func(s string) string { return s + "\a" },
	"a newline at the end":        func(s string) string { return s + "\n" },
	"a tab within":                func(s string) string { return s[:1] + "\t" + s[1:] },
	"delete":                      func(s string) string { return s + "\x7f" },
	"a C1 control":                func(s string) string { return s + "\u0085" },
	"a blank in front":            func(s string) string { return " " + s },
	"a blank at the end":          func(s string) string { return s + " " },
	"a no-break space at the end": func(s string) string { return s + "\u00a0" },
	"a line separator at the end": func(s string) string { return s + "\u2028" },
	"a zero-width space":          func(s string) string { return s[:1] + "\u200b" + s[1:] },
	"a soft hyphen":               func(s string) string { return s[:1] + "\u00ad" + s[1:] },
	"a byte order mark in front":  func(s string) string { return "\ufeff" + s },
	"a direction override":        func(s string) string { return s + "\u202e" },
	"a tag character":             func(s string) string { return s + "\U000e0041" },
}

// identifyingFields are the fields that identify something, each with a document that has it.
var identifyingFields = map[string]struct{ document, value string }{
	"name":                        {`{"name":%s,"description":"d","version":"1.0.0"}`, "com.example/a"},
	"version":                     {`{"name":"com.example/a","description":"d","version":%s}`, "1.0.0"},
	"repository.url":              {inRepository("url"), "https://git.example/a/b"},
	"repository.source":           {inRepository("source"), "forge"},
	"repository.id":               {inRepository("id"), "b94b5f7e"},
	"packages[0].registryType":    {inPackage("registryType"), "npm"},
	"packages[0].registryBaseUrl": {inPackage("registryBaseUrl"), "https://registry.example"},
	"packages[0].identifier":      {inPackage("identifier"), "left-pad"},
	"packages[0].version":         {inPackage("version"), "1.0.0"},
	"remotes[0].url": {
		`{"name":"com.example/a","description":"d","version":"1.0.0","remotes":[{"type":"sse","url":%s}]}`,
		"https://a.example/mcp",
	},
	"remotes[0].headers[0].name": {
		`{"name":"com.example/a","description":"d","version":"1.0.0","remotes":[{"type":"sse","url":"https://a.example","headers":[{"name":%s}]}]}`, "X-Key",
	},
	"packages[0].transport.url": {
		`{"name":"com.example/a","description":"d","version":"1.0.0","packages":[{"registryType":"npm","identifier":"a","transport":{"type":"sse","url":%s}}]}`, "https://a.example/mcp",
	},
	"websiteUrl": {
		`{"name":"com.example/a","description":"d","version":"1.0.0","websiteUrl":%s}`, "https://a.example/",
	},
}

func inRepository(field string) string {
	fields := []string{`"url":"https://git.example/a/b"`, `"source":"forge"`}
	return `{"name":"com.example/a","description":"d","version":"1.0.0","repository":{` + replaceField(fields,
		field) + `}}`
}

func inPackage(field string) string {
	fields := []string{`"registryType":"npm"`, `"identifier":"a"`, `"transport":{"type":"stdio"}`}
	return `{"name":"com.example/a","description":"d","version":"1.0.0","packages":[{` + replaceField(fields,
		field) + `}]}`
}

// replaceField returns the fields of an object with a verb for the value of one of them.
func replaceField(fields []string, field string) string {
	rest := slices.DeleteFunc(fields, func(f string) bool { return strings.HasPrefix(f, `"`+field+`"`) })
	return strings.Join(append(rest, `"`+field+`":%s`), ",")
}

func TestIdentifyingFieldsAreVisible(t *testing.T) {
	t.Parallel()
	for path, field := range identifyingFields {
		good := fmt.Sprintf(field.document, asJSON(t, field.value))
		if draft, err := ParseDraft([]byte(good)); err != nil || draft.checkRules().refusalText("document") != "" {
			t.Errorf("%s is refused: %v, %v", good, err, draft.Issues())
		}
		for defect, spoil := range invisibleDefects {
			body := fmt.Sprintf(field.document, asJSON(t, spoil(field.value)))
			draft, err := ParseDraft([]byte(body))
			if err != nil {
				t.Errorf("%s with %s: %v", path, defect, err)
				continue
			}
			if _, err := draft.Document(); codeOf(err) != CodeRules || !strings.Contains(err.Error(), path+" ") {
				t.Errorf("%s with %s: Document = %v, want a fault with code %s that names the field", path, defect,
					err, CodeRules)
			}
			named := slices.ContainsFunc(draft.Issues(), func(i Issue) bool {
				return i.Path == path && i.Severity == SeverityError
			})
			if !named {
				t.Errorf("%s with %s: Issues = %+v, want an error of that field", path, defect, draft.Issues())
			}
		}
	}
}

// TestStoredVersionsStayReadable: versions that were stored before the rule are still versions, and
// an import that tolerates broken rules takes them.
func TestStoredVersionsStayReadable(t *testing.T) {
	t.Parallel()
	for defect, spoil := range invisibleDefects {
		version := spoil("1.0.0")
		if got, err := ParseVersion(version); err != nil || got.String() != version {
			t.Errorf("%s: ParseVersion = %q, %v", defect, got, err)
		}
		draft, err := ParseDraft(
			[]byte(`{"name":"com.example/a","description":"d","version":` + asJSON(t, version) + `}`))
		must.Succeed(t, err)
		if doc, err := draft.ImportedDocument(); err != nil || doc.Version().String() != version {
			t.Errorf("%s: Tolerated = %v, %v", defect, doc.Version(), err)
		}
	}
	if _, err := ParseVersion("1\x00"); !fault.Is(err, fault.Invalid) {
		t.Errorf("a NUL in a version: %v", err)
	}
}

func asJSON(t *testing.T, s string) string {
	t.Helper()
	b, err := json.Marshal(s)
	must.Succeed(t, err)
	return string(b)
}
