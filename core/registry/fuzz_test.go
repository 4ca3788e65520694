package registry

import (
	"bytes"
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
		if err != nil || !bytes.Equal(same.Bytes(), doc.Bytes()) || same.Name() != doc.Name() || !slices.Equal(same.Remotes(), doc.Remotes()) {
			t.Fatalf("%s read again is %s, %v", doc.Bytes(), same.Bytes(), err)
		}
	})
}

// FuzzVersion: what parses is kept as it is, and semantic versions equal themselves in precedence.
func FuzzVersion(f *testing.F) {
	for _, s := range []string{"1.0.0", "v1.2.3-rc.1+b", "^1", "1.0 - 2.0", "1||2", "x", "latest", "", "1.0.0-alpha.01"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if v, err := ParseVersion(s); err == nil && v.String() != s {
			t.Fatalf("%q became %q", s, v)
		}
		if v, ok := parseSemver(s); ok && v.compare(v) != 0 {
			t.Fatalf("%q does not equal itself", s)
		}
	})
}
