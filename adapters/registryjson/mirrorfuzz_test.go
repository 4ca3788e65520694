package registryjson

import (
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/must"
)

// FuzzMirrorPage reads any text as a page of a list. It must find the records and the cursor that
// encoding/json finds, and return each record once.
func FuzzMirrorPage(f *testing.F) {
	for _, text := range []string{
		`{"servers":[{"server":{"name":"b"},"_meta":{}},{"server":{"name":"a"}},null,7],"metadata":{"count":2,"nextCursor":"x"}}`,
		`{"metadata":{"nextCursor":7},"servers":[]}`, `{"servers":null}`,
		`{"servers":null,"metadata":{"nextCursor":"x"}}`, `{}`, `[]`, `<html>`,
		`{"servers":[{"name":"a"},{"name":""},{"name":"é"}]} `, "\ufeff" + `{"servers":[]}`, `{"servers":[{}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m := &mirrorRead{limits: NewMirrorSource().limits, records: newTestSpool(t)}
		cursor, err := m.readRecords(strings.NewReader(text))
		if err != nil {
			return
		}
		checkWithJSON(t, text, cursor, m.records.count())
		must.Succeed(t, m.records.flush())
		m.records.sort()
		list := &mirrorList{records: m.records}
		var names []string
		for n := 0; ; {
			server, err := list.Next(t.Context())
			if errors.Is(err, io.EOF) {
				if n != list.Records() {
					t.Errorf("%d of %d records", n, list.Records())
				}
				break
			}
			must.Succeed(t, err)
			n += len(server.Entries)
			names = append(names, server.Name)
		}
		if !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) {
			t.Errorf("names are %q", names)
		}
	})
}

// checkWithJSON compares a page with what encoding/json reads. It ignores names with escapes and
// names that occur twice, in which the two differ.
func checkWithJSON(t *testing.T, text, cursor string, records int) {
	t.Helper()
	var page map[string]json.RawMessage
	if strings.ContainsRune(text, '\\') || strings.Count(text, `"servers"`) != 1 ||
		strings.Count(text, `"metadata"`) > 1 ||
		json.Unmarshal([]byte(text), &page) != nil {
		return
	}
	var servers []json.RawMessage
	var metadata struct {
		NextCursor string `json:"nextCursor"`
	}
	if raw, ok := page["servers"]; !ok || json.Unmarshal(raw, &servers) != nil {
		t.Errorf("%q has no servers, but was read", text)
	}
	if raw, ok := page["metadata"]; ok && json.Unmarshal(raw, &metadata) != nil {
		t.Errorf("%q has wrong metadata, but was read", text)
	}
	if records != len(servers) || cursor != metadata.NextCursor {
		t.Errorf("%q has %d records and cursor %q, want %d and %q", text, records, cursor, len(servers),
			metadata.NextCursor)
	}
}
