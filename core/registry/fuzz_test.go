package registry

import (
	"bytes"
	"regexp"
	"slices"
	"testing"
)

// FuzzDocument: every error of the parser is a fault, and a document that is accepted is accepted
// again from its own bytes, which do not change.
func FuzzDocument(f *testing.F) {
	for _, folder := range []string{"good", "bad", "malformed"} {
		for _, body := range testFiles(f, folder) {
			f.Add(body)
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		draft, err := ParseDraft(body)
		if err != nil {
			return
		}
		doc, err := draft.Document()
		failed := slices.ContainsFunc(draft.Issues(), func(i Issue) bool { return i.Severity == SeverityError })
		if failed != (err != nil) {
			t.Fatalf("Document = %v, and the issues are %+v", err, draft.Issues())
		}
		if err != nil {
			return
		}
		if !sameJSON(t, doc.Bytes(), body) {
			t.Fatalf("%s became %s", body, doc.Bytes())
		}
		again, err := ParseDraft(doc.Bytes())
		if err != nil {
			t.Fatalf("ParseDraft of an accepted document = %v", err)
		}
		same, err := again.Document()
		if err != nil || !bytes.Equal(same.Bytes(), doc.Bytes()) || same.Name() != doc.Name() ||
			!slices.Equal(same.Remotes(), doc.Remotes()) {
			t.Fatalf("%s read again is %s, %v", doc.Bytes(), same.Bytes(), err)
		}
	})
}

// semanticVersion is the grammar of SemVer 2.0.0, with an optional "v" before it.
var semanticVersion = regexp.MustCompile(`^v?` + number + `\.` + number + `\.` + number +
	`(-` + prerelease + `(\.` + prerelease + `)*)?(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`)

const (
	number     = `(0|[1-9][0-9]*)`
	prerelease = `(` + number + `|[0-9]*[A-Za-z-][0-9A-Za-z-]*)`
)

// FuzzVersion checks that ParseVersion keeps the text of a version and that parseSemver accepts
// exactly the semantic versions.
func FuzzVersion(f *testing.F) {
	for _, s := range []string{
		"1.0.0", "v1.2.3-rc.1+b", "^1", "1.0 - 2.0", "1||2", "x", "latest", "", "1.0.0-alpha.01", "v1", "1.2",
		"vv1.0.0", "1.0.0+01",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if v, err := ParseVersion(s); err == nil && v.String() != s {
			t.Fatalf("%q became %q", s, v)
		}
		if v, ok := parseSemver(s); ok != semanticVersion.MatchString(s) {
			t.Fatalf("parseSemver(%q) = %q, %t", s, v, ok)
		}
	})
}
