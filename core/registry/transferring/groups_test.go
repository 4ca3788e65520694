package transferring_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/transferring"
	"github.com/tollgate-dev/tollgate/ports/eventdata/eventdatatest"
	"github.com/tollgate-dev/tollgate/ports/recordsource"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/test/fakedb"
)

// inGroup is the number of servers that one transaction of an import stores.
const inGroup = 50

// newServers returns a version of each of n servers, whose names are not in their order.
func newServers(n int) []recordsource.Entry {
	entries := make([]recordsource.Entry, n)
	for i := range entries {
		entries[i] = recordedEntry(i%9,
			document(fmt.Sprintf("com.example/s%d", n-i), "1.0.0", remote(fmt.Sprintf("https://%d.example/mcp", i))))
	}
	return entries
}

// TestServersAreStoredTogether checks how many transactions an import has.
func TestServersAreStoredTogether(t *testing.T) {
	t.Parallel()
	large := make([]recordsource.Entry, 17)
	for i := range large {
		large[i] = plainEntry(document(fmt.Sprintf("com.example/s%d", i), "1.0.0",
			`"title":"`+strings.Repeat("x", 1_000_000)+`"`))
	}
	a, again, b := plainEntry(document("com.example/a", "1.0.0")), plainEntry(document("com.example/a", "2.0.0")),
		plainEntry(document("com.example/b", "1.0.0"))
	for what, c := range map[string]struct {
		entries []recordsource.Entry
		want    int
	}{
		"servers":         {newServers(2*inGroup + 1), 3},
		"one server":      {[]recordsource.Entry{a, again}, 1},
		"a server apart":  {[]recordsource.Entry{a, b, again}, 2},
		"large documents": {large, 2},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newFixture()
			if counts, outcomes := w.runImport(t, true, c.entries...); counts.Taken != len(c.entries) ||
				w.runner.n != c.want {
				t.Errorf("%d transactions, %+v; want %d: %.300q", w.runner.n, counts, c.want, outcomes)
			}
		})
	}
}

// newMixed returns servers of several groups, with records that break a rule, that conflict with a
// server of the same group, of another group, or of the registry, and that the store refuses.
func newMixed() []recordsource.Entry {
	entries := newServers(3*inGroup + 7)
	entries[5] = plainEntry(`{"name":"com.example/broken"}`)
	// of the same group
	entries[20] = recordedEntry(1, document("com.example/thief", "1.0.0", remote("https://12.example/mcp")))
	entries[21] = recordedEntry(2, document("com.example/thief", "2.0.0"))
	entries[44] = recordedEntry(2, document("com.example/here", "1.0.0", remote("https://here.example/mcp")))
	// of the group before
	entries[70] = recordedEntry(1, document("com.example/second", "1.0.0", remote("https://3.example/mcp")))
	entries[71] = recordedEntry(1, document("com.example/other", "1.0.0", remote("https://here.example/mcp")))
	entries[90] = recordedEntry(1, document("com.example/unstorable", "1.0.0"))
	entries[120] = entries[60]
	entries[121] = recordedEntry(3, document("com.example/here", "1.0.0", `"title":"Other"`))
	return entries
}

// pickyWriter refuses a server, as a database refuses text that it cannot store.
type pickyWriter struct{ registrystore.ServerWriter }

func (w pickyWriter) Save(ctx context.Context, changes []registrystore.Change) error {
	if slices.ContainsFunc(changes, func(c registrystore.Change) bool {
		return c.Release.Name.String() == "com.example/unstorable"
	}) {
		return fault.New(fault.Invalid, "the text has characters that cannot be stored")
	}
	return w.ServerWriter.Save(ctx, changes)
}

// newPickyFixture returns a registry with one server and a webhook.
func newPickyFixture(t *testing.T) *fixture {
	t.Helper()
	w := newFixtureWith(func(w registrystore.ServerWriter) registrystore.ServerWriter { return pickyWriter{w} })
	w.runImport(t, false, recordedEntry(1, document("com.example/here", "1.0.0", remote("https://here.example/mcp"))))
	eventdatatest.AddWebhook(t, fakedb.NewWebhooks(w.runner.db))
	return w
}

// TestFaultInTheMiddleOfAGroup checks that records that cannot be stored change nothing for the
// others: the outcomes, the versions and their events are those of imports of one record each.
func TestFaultInTheMiddleOfAGroup(t *testing.T) {
	t.Parallel()
	alone, together := newPickyFixture(t), newPickyFixture(t)
	var want []string
	for _, e := range newMixed() {
		_, outcomes := alone.runImport(t, false, e)
		want = append(want, outcomes...)
	}
	together.runner.twice = true
	_, got := together.runImport(t, false, newMixed()...)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the outcomes are %q, want %q", got, want)
	}
	for _, refused := range []string{
		"refused com.example/thief@1.0.0 the remote URL https://12.example/mcp belongs to another server",
		"refused com.example/unstorable@1.0.0 the text has characters that cannot be stored",
	} {
		if !slices.Contains(got, refused) {
			t.Errorf("the outcomes lack %q", refused)
		}
	}
	stored := together.exportAll(t)
	requireEqual(t, stored, alone.exportAll(t))
	events := eventdatatest.Take(t, fakedb.NewDeliveries(together.runner.db))
	if len(events) != len(stored)-1 {
		t.Errorf("%d events of %d new versions", len(events), len(stored)-1)
	}
	if counts, _ := together.runImport(t, false, newMixed()...); counts.Taken != 0 {
		t.Errorf("another import: %+v, want that it changes nothing", counts)
	}
	requireEqual(t, together.exportAll(t), stored)
}

// TestInterruptedGroups interrupts an import at each of its transactions. What it stored until then
// is whole, and another import ends with the same registry.
func TestInterruptedGroups(t *testing.T) {
	t.Parallel()
	entries := newServers(inGroup + 3)
	entries[20] = recordedEntry(1, document("com.example/thief", "1.0.0", remote("https://12.example/mcp")))
	whole := newPickyFixture(t)
	want, _ := whole.runImport(t, false, entries...)
	for at := 2; at <= whole.runner.n; at++ { // the first one has stored the server that is there
		w := newPickyFixture(t)
		w.runner.failAt = at
		first, err := w.Import(t.Context(), &source{entries: entries}, transferring.Options{})
		if !fault.Is(err, fault.Unavailable) || first.Taken != len(w.exportAll(t))-1 {
			t.Fatalf("interrupted at transaction %d: %v, %+v with %d stored versions", at, err, first,
				len(w.exportAll(t))-1)
		}
		next, outcomes := w.runImport(t, false, entries...)
		if first.Taken+next.Taken != want.Taken || next.Refused != want.Refused {
			t.Fatalf("interrupted at transaction %d: %+v, and then %+v; want %+v in all: %q", at, first, next,
				want, outcomes)
		}
		if !slices.EqualFunc(w.exportAll(t), whole.exportAll(t), equalRecords) {
			t.Fatalf("interrupted at transaction %d: the registry differs", at)
		}
		if events := eventdatatest.Take(t, fakedb.NewDeliveries(w.runner.db)); len(events) != want.Taken {
			t.Fatalf("interrupted at transaction %d: %d events of %d versions", at, len(events), want.Taken)
		}
	}
}

func equalRecords(a, b registry.Record) bool {
	return a.Release == b.Release && string(a.Document) == string(b.Document)
}
