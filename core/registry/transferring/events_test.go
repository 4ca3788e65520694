package transferring_test

import (
	"slices"
	"testing"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/transferring"
	"github.com/tollgate-dev/tollgate/ports/eventdata/eventdatatest"
	"github.com/tollgate-dev/tollgate/ports/recordsource"
	"github.com/tollgate-dev/tollgate/test/fakedb"
)

// TestImportIsAnEvent checks that each version that an import stores is an event, once, also if a
// transaction runs twice, and that versions which are there, refused or rolled back are none
// (contract C-50).
func TestImportIsAnEvent(t *testing.T) {
	t.Parallel()
	w := newFixture()
	w.runner.twice = true
	eventdatatest.AddWebhook(t, fakedb.NewWebhooks(w.runner.db))
	entries := []recordsource.Entry{
		recordedEntry(1, document("com.example/a", "1.0.0", remote("https://a.example/mcp"))),
		recordedEntry(2, document("com.example/a", "2.0.0")),
		plainEntry("{}"), recordedEntry(3, document("com.example/b", "1.0.0", remote("https://a.example/mcp"))),
		plainEntry(document("com.example/c", "1.0.0")),
	}
	entries[1].Recorded.Status = "deprecated"
	want := []string{
		"published com.example/a@1.0.0 active " + document("com.example/a", "1.0.0", remote("https://a.example/mcp")),
		"published com.example/a@2.0.0 deprecated " + document("com.example/a", "2.0.0"),
		"published com.example/c@1.0.0 active " + document("com.example/c", "1.0.0"),
	}
	for _, what := range []string{"an import", "the same import again"} {
		_, outcomes := w.runImport(t, false, entries...)
		got := eventdatatest.Take(t, fakedb.NewDeliveries(w.runner.db))
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: the events are %q, want %q; the outcomes are %q", what, got, want, outcomes)
		}
		want = nil
	}
	w.trail.away = errAway
	if _, err := w.Import(t.Context(), &source{
		entries: []recordsource.Entry{plainEntry(document("com.example/d", "1.0.0"))},
	}, transferring.Options{}); !fault.Is(err, fault.Unavailable) {
		t.Errorf("Import without an audit log = %v", err)
	}
	if got := eventdatatest.Take(t, fakedb.NewDeliveries(w.runner.db)); len(got) != 0 {
		t.Errorf("an import that was rolled back has the events %q", got)
	}
}
