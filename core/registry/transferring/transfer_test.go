package transferring_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/announce"
	"github.com/tollgate-dev/tollgate/core/registry/change"
	"github.com/tollgate-dev/tollgate/core/registry/quarantining"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
	"github.com/tollgate-dev/tollgate/core/registry/transferring"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/eventdata/eventdatatest"
	"github.com/tollgate-dev/tollgate/ports/recordsource"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

var (
	now  = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	past = now.AddDate(-1, 0, 0)
)

// fixture is a mover of an empty registry in memory.
type fixture struct {
	*transferring.Mover
	servers    *fakedb.Servers
	quarantine *fakedb.Quarantine
	runner     *runner
	trail      *fakeRecorder
	lists      *fakedb.ToolLists
	owners     owners
}

// owners are the owners of servers.
type owners map[string]registry.Owner

func (o owners) All(context.Context) (map[string]registry.Owner, error) { return o, nil }
func (o owners) Of(_ context.Context, n registry.Name) (registry.Owner, error) {
	return o[n.String()], nil
}

func (o owners) Set(_ context.Context, n registry.Name, one registry.Owner) error {
	o[n.String()] = one
	return nil
}

// TestOwners: an import sets the owner of a server that has none here, an export has it, and a wrong one is refused.
func TestOwners(t *testing.T) {
	t.Parallel()
	w := newFixture()
	w.owners["com.example/b"] = registry.Owner{Team: "Ours"}
	owned := func(doc, team, contact string) recordsource.Entry {
		e := plainEntry(doc)
		e.Recorded.Owner, e.Recorded.Contact = team, contact
		return e
	}
	_, outcomes := w.runImport(t, false, owned(document("com.example/a", "1.0.0"), "Weather", "weather@example.com"),
		owned(document("com.example/b", "1.0.0"), "Theirs", ""), owned(document("com.example/c", "1.0.0"), "Weather", "javascript:x"),
		plainEntry(document("com.example/d", "1.0.0")))
	if !slices.ContainsFunc(outcomes, func(o string) bool { return strings.HasPrefix(o, "refused com.example/c@1.0.0 contact must be") }) {
		t.Errorf("the outcomes are %q", outcomes)
	}
	w.runImport(t, false, owned(document("com.example/a", "1.0.0"), "Others", ""), owned(document("com.example/a", "2.0.0"), "Others", ""))
	want := map[string]string{"com.example/a": "Weather weather@example.com", "com.example/b": "Ours ", "com.example/d": " "}
	_, err := w.Export(t.Context(), func(r recordsource.Exported) error {
		if got := r.Owner.Team + " " + r.Owner.Contact; got != want[r.Name.String()] {
			t.Errorf("%s %s is exported with the owner %q", r.Name, r.Version, got)
		}
		return nil
	})
	must.Succeed(t, err)
}

// fakeRecorder keeps what was recorded in the audit log, also by a transaction that fails.
type fakeRecorder struct {
	recorded []string
	away     error
}

func (t *fakeRecorder) RecordChanges(_ context.Context, changes ...audit.Change) error {
	for _, c := range changes {
		if n := c.Details.Int("versions"); c.Action == "import" && n > 0 && c.Details.Text("run") != "" {
			t.recorded = append(t.recorded, fmt.Sprint(n, " in all"))
		} else if c.Action == "import" && c.ByOperator && c.Details.Text(audit.DetailPart) != "" {
			t.recorded = append(t.recorded, c.Details.Text("serverName")+"@"+c.Details.Text("version"))
		} else {
			t.recorded = append(t.recorded, string(c.Action)) // fails the comparison
		}
	}
	return t.away
}

func newFixture() *fixture {
	return newFixtureWith(func(w registrystore.ServerWriter) registrystore.ServerWriter { return w })
}

// newFixtureWith returns a fixture whose mover writes with what wrap returns.
func newFixtureWith(wrap func(registrystore.ServerWriter) registrystore.ServerWriter) *fixture {
	db := fakedb.New()
	w := &fixture{servers: fakedb.NewServers(db, true), runner: &runner{db: db}, trail: &fakeRecorder{}}
	w.quarantine, w.lists, w.owners = fakedb.NewQuarantine(db), fakedb.NewToolLists(db), owners{}
	w.Mover = transferring.New(transferring.Ports{
		Transactions: w.runner, Writer: wrap(w.servers), Reader: w.servers, Quarantine: w.quarantine, Recorder: w.trail,
		Clock:  clocktest.NewManual(now),
		Events: newEvents(db), ToolLists: w.lists, Owners: w.owners,
	})
	return w
}

// runner counts transactions, runs each one twice when the database requests it, and fails from one
// of them on.
type runner struct {
	db     *fakedb.Database
	n      int
	twice  bool
	failAt int
}

var errAway = fault.New(fault.Unavailable, "the database is away")

func (r *runner) Atomically(ctx context.Context, do func(context.Context) error) error {
	if r.n++; r.n == r.failAt {
		return errAway
	}
	if r.twice {
		_ = r.db.Atomically(ctx, func(ctx context.Context) error { return errors.Join(do(ctx), errAway) })
	}
	return r.db.Atomically(ctx, do)
}

// source gives entries, and then an error.
type source struct {
	entries []recordsource.Entry
	fails   error
}

func (s *source) Next(context.Context) (recordsource.Entry, error) {
	if len(s.entries) == 0 {
		if s.fails != nil {
			return recordsource.Entry{}, s.fails
		}
		return recordsource.Entry{}, io.EOF
	}
	e := s.entries[0]
	s.entries = s.entries[1:]
	return e, nil
}

func document(name, version string, more ...string) string {
	return fmt.Sprintf(`{"name":%q,"description":"Forecasts","version":%q%s}`, name, version,
		strings.Join(append([]string{""}, more...), ","))
}

func remote(url string) string {
	return `"remotes":[{"type":"sse","url":"` + url + `"}]`
}

// plainEntry is a document without a record of it; recordedEntry is one published after a number of
// days.
func plainEntry(doc string) recordsource.Entry {
	return recordsource.Entry{Origin: "test", Document: []byte(doc)}
}

func recordedEntry(day int, doc string) recordsource.Entry {
	e := plainEntry(doc)
	at := past.AddDate(0, 0, day)
	e.Recorded = recordsource.Recorded{Status: "active", PublishedAt: at, UpdatedAt: at, StatusChangedAt: at}
	return e
}

// runImport imports the entries and returns the outcomes, each as one line.
func (w *fixture) runImport(t *testing.T, lenient bool, entries ...recordsource.Entry) (transferring.Counts, []string) {
	t.Helper()
	var outcomes []string
	counts, err := w.Import(t.Context(), &source{entries: entries},
		transferring.Options{Lenient: lenient, Observe: func(o transferring.Outcome) {
			outcomes = append(outcomes,
				strings.TrimSpace(fmt.Sprintf("%s %s@%s %s", o.Verdict, o.Name, o.Version, o.Reason)))
		}})
	must.Succeed(t, err)
	return counts, outcomes
}

// exportAll returns all records.
func (w *fixture) exportAll(t *testing.T) []registry.Record {
	t.Helper()
	var all []registry.Record
	n, err := w.Export(t.Context(), func(r recordsource.Exported) error {
		all = append(all, r.Record)
		return nil
	})
	if err != nil || n != len(all) {
		t.Fatalf("Export = %d, %v with %d records", n, err, len(all))
	}
	return all
}

func requireEqual(t *testing.T, got, want []registry.Record) {
	t.Helper()
	if !slices.EqualFunc(got, want, equalRecords) {
		t.Errorf("the registry holds %+v, want %+v", got, want)
	}
}

func TestImportTwice(t *testing.T) {
	t.Parallel()
	w := newFixture()
	deprecated := recordedEntry(2, document("com.example/b", "1.0.0"))
	deprecated.Recorded.Status, deprecated.Recorded.StatusMessage = "deprecated", "use 2"
	deprecated.Recorded.StatusChangedAt = past.AddDate(0, 0, 3)
	deprecated.Recorded.UpdatedAt = past.AddDate(0, 0, 4)
	entries := []recordsource.Entry{
		recordedEntry(1, document("com.example/a", "1.0.0")), deprecated,
		recordedEntry(4, document("com.example/b", "2.0.0")),
		recordedEntry(1, document("com.example/a", "0.9.0")), // apart from its other version
		plainEntry(document("com.example/c", "1.0.0")),
	}
	if counts, outcomes := w.runImport(t, false, entries...); counts != (transferring.Counts{Taken: 5}) {
		t.Fatalf("first import: %+v %q", counts, outcomes)
	}
	stored := w.exportAll(t)
	if got := stored[2]; got.Status != registry.StatusDeprecated || got.StatusMessage != "use 2" || got.Latest ||
		!got.StatusChangedAt.Equal(past.AddDate(0, 0, 3)) || !got.UpdatedAt.Equal(past.AddDate(0, 0, 4)) ||
		!got.PublishedAt.Equal(past.AddDate(0, 0, 2)) {
		t.Errorf("what was recorded is %+v", got)
	}
	if got := stored[4]; got.Status != registry.StatusActive || !got.PublishedAt.Equal(now) || !got.Latest {
		t.Errorf("a document alone is %+v, want it active, published now", got)
	}
	transactions := w.runner.n
	if counts, outcomes := w.runImport(t, false, entries...); counts != (transferring.Counts{Skipped: 5}) {
		t.Errorf("second import: %+v %q", counts, outcomes)
	}
	requireEqual(t, w.exportAll(t), stored)
	if w.runner.n != transactions {
		t.Error("an import that has nothing to do locks")
	}
}

// TestImportIsRecorded wants exactly the versions that are stored in the audit log.
func TestImportIsRecorded(t *testing.T) {
	t.Parallel()
	w := newFixture()
	entries := []recordsource.Entry{
		recordedEntry(1, document("com.example/a", "1.0.0")), recordedEntry(2, document("com.example/a", "1.1.0")),
		plainEntry("{}"), recordedEntry(3, document("com.example/b", "1.0.0")),
	}
	want := []string{"com.example/a@1.0.0", "com.example/a@1.1.0", "com.example/b@1.0.0", "3 in all"}
	for range 2 { // the second time there is nothing to take
		if w.runImport(t, false, entries...); !slices.Equal(w.trail.recorded, want) {
			t.Errorf("recorded are %v, want %v", w.trail.recorded, want)
		}
	}
	w = newFixture()
	w.trail.away = errAway
	if _, err := w.Import(t.Context(), &source{entries: entries[:1]}, transferring.Options{}); !fault.Is(err,
		fault.Unavailable) {
		t.Errorf("Import without an audit log = %v", err)
	}
	requireEqual(t, w.exportAll(t), nil)
}

func TestImportRefuses(t *testing.T) {
	t.Parallel()
	change := func(f func(*recordsource.Entry)) recordsource.Entry {
		e := recordedEntry(1, document("com.example/a", "1.0.0"))
		f(&e)
		return e
	}
	recorded := func(f func(*recordsource.Recorded)) recordsource.Entry {
		return change(func(e *recordsource.Entry) { f(&e.Recorded) })
	}
	for name, c := range map[string]struct {
		entry recordsource.Entry
		want  string
	}{
		"no JSON": {plainEntry(`{`), "refused @ body is not valid JSON: unexpected end of JSON input"},
		"a broken rule": {
			plainEntry(document("com.example/a", "1.0.0", `"title":""`)),
			"refused com.example/a@1.0.0 document breaks a rule: title must not be empty",
		},
		"no version": {
			plainEntry(`{"name":"com.example/a","description":"x"}`),
			"refused com.example/a@ document breaks a rule: version is required",
		},
		"unreadable": {
			change(func(e *recordsource.Entry) { e.Unreadable = errors.New("too large") }), "refused @ too large",
		},
		"broken": {
			change(func(e *recordsource.Entry) { e.Broken = errors.New("ends early") }), "refused @ ends early",
		},
		"unknown status": {
			recorded(func(r *recordsource.Recorded) { r.Status = "gone" }),
			`refused com.example/a@1.0.0 status must be active, deprecated or deleted, not "gone"`,
		},
		"message": {
			recorded(func(r *recordsource.Recorded) { r.StatusMessage = "x" }),
			"refused com.example/a@1.0.0 statusMessage is allowed with deprecated and deleted only, not with active",
		},
		"from the future": {
			recorded(func(r *recordsource.Recorded) { r.UpdatedAt = now.AddDate(0, 0, 2) }),
			"refused com.example/a@1.0.0 updatedAt is in the future",
		},
		"from before time": {
			recorded(func(r *recordsource.Recorded) { r.PublishedAt = time.Unix(-1, 0) }),
			"refused com.example/a@1.0.0 publishedAt is before 1970",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture()
			counts, outcomes := w.runImport(t, false, recordedEntry(1, document("com.example/a", "0.1.0")), c.entry,
				recordedEntry(2, document("com.example/a", "0.2.0")))
			if counts.Taken != 2 || counts.Refused != 1 || (counts.Broken == 1) != (name == "broken") ||
				!slices.Contains(outcomes, c.want) {
				t.Errorf("%+v %q, want the others taken and %q", counts, outcomes, c.want)
			}
		})
	}
}

// TestImportCountsLenient: a refused record that a lenient import takes is counted.
func TestImportCountsLenient(t *testing.T) {
	t.Parallel()
	entries := []recordsource.Entry{
		plainEntry(`{"name":"com.example/a","version":"1.0.0","description":"","repository":{}}`),
		plainEntry(`{"name":"no name","version":"1.0.0"}`), plainEntry(document("com.example/b", "1.0.0")),
	}
	strict, outcomes := newFixture().runImport(t, false, entries...)
	if strict != (transferring.Counts{Taken: 1, Refused: 2, Lenient: 1}) {
		t.Errorf("the counts are %+v, %q", strict, outcomes)
	}
	if lenient, outcomes := newFixture().runImport(t, true, entries...); lenient != (transferring.Counts{Taken: 2, Refused: 1}) {
		t.Errorf("the counts of a lenient import are %+v, %q", lenient, outcomes)
	}
}

func TestImportLenient(t *testing.T) {
	t.Parallel()
	w := newFixture()
	counts, outcomes := w.runImport(t, true,
		recordedEntry(1, document("com.example/a", "1.0.0", `"repository":{}`)),
		recordedEntry(2, document("com.example/a", "^1.0.0")))
	if counts != (transferring.Counts{Taken: 1, Refused: 1}) {
		t.Errorf("%+v %q", counts, outcomes)
	}
}

func TestImportConflicts(t *testing.T) {
	t.Parallel()
	w := newFixture()
	w.runImport(t, false, recordedEntry(1, document("com.example/a", "1.0.0", remote("https://a.example/mcp"))))
	gone := recordedEntry(9, document("com.example/a", "1.0.0", remote("https://a.example/mcp")))
	gone.Recorded.Status = "deleted"
	_, outcomes := w.runImport(t, false,
		gone,
		recordedEntry(1, document("com.example/a", "1.0.0", remote("https://a.example/other"))),
		recordedEntry(1, document("com.example/b", "1.0.0")),
		recordedEntry(2, document("com.example/b", "2.0.0", remote("https://A.example:443/mcp"))),
		recordedEntry(3, document("com.example/b", "3.0.0")),
		recordedEntry(3, document("com.example/b", "3.0.0")),
		recordedEntry(3, document("com.example/b", "3.0.0", `"title":"Other"`)),
	)
	want := []string{
		"skipped com.example/a@1.0.0 is active here and deleted in the import",
		"refused com.example/a@1.0.0 the registry already has this version with another document, and a published version cannot be replaced",
		"refused com.example/b@2.0.0 the remote URL https://a.example/mcp belongs to another server",
		"taken com.example/b@1.0.0",
		"taken com.example/b@3.0.0",
		"skipped com.example/b@3.0.0",
		"refused com.example/b@3.0.0 the registry already has this version with another document, and a published version cannot be replaced",
	}
	slices.Sort(outcomes)
	slices.Sort(want)
	if !slices.Equal(outcomes, want) {
		t.Errorf("outcomes %q, want %q", outcomes, want)
	}
	for _, r := range w.exportAll(t)[1:] {
		if !r.UpdatedAt.Equal(r.PublishedAt) {
			t.Errorf("%+v lost its update time beside a refused one", r)
		}
	}
}

func TestImportIsRunAgain(t *testing.T) {
	t.Parallel()
	w := newFixture()
	w.runner.twice = true
	if counts, outcomes := w.runImport(t, false, recordedEntry(1, document("com.example/a", "1.0.0")),
		recordedEntry(2, document("com.example/a", "2.0.0"))); counts.Taken != 2 || len(outcomes) != 2 {
		t.Errorf("%+v %q, want each outcomes once", counts, outcomes)
	}
}

func TestImportEndsEarly(t *testing.T) {
	t.Parallel()
	w := newFixture()
	lost := errors.New("connection lost")
	counts, err := w.Import(t.Context(), &source{newServers(3), lost}, transferring.Options{})
	if !errors.Is(err, lost) || counts.Taken != 3 || len(w.exportAll(t)) != 3 {
		t.Errorf("a source that breaks off: %+v, %v, want all before taken", counts, err)
	}
}

// TestExportIsOrdered: all pages, deleted versions too, and what export gives makes the same
// registry again.
func TestExportIsOrdered(t *testing.T) {
	t.Parallel()
	w := newFixture()
	var entries []recordsource.Entry
	for i := range 250 {
		e := recordedEntry(i%40, document(fmt.Sprintf("com.example/s%d", i%7), fmt.Sprintf("%d.0.0", i)))
		if i%3 == 0 {
			e.Recorded.Status = "deleted"
		}
		entries = append(entries, e)
	}
	w.runImport(t, false, entries...)
	all := w.exportAll(t)
	if len(all) != 250 || !slices.IsSortedFunc(all, func(a, b registry.Record) int {
		return strings.Compare(a.Name.String()+"\x00"+a.Version.String(), b.Name.String()+"\x00"+b.Version.String())
	}) {
		t.Errorf("export of %d records is not all of them in order", len(all))
	}
	again := newFixture()
	var moved []recordsource.Entry
	for _, r := range all {
		moved = append(moved, recordsource.Entry{Document: r.Document, Recorded: recordsource.Recorded{
			Status: string(r.Status), StatusMessage: r.StatusMessage,
			PublishedAt: r.PublishedAt, UpdatedAt: r.UpdatedAt, StatusChangedAt: r.StatusChangedAt,
		}})
	}
	again.runImport(t, false, moved...)
	requireEqual(t, again.exportAll(t), all)

	full := errors.New("disk full")
	if n, err := w.Export(t.Context(), func(recordsource.Exported) error {
		return full
	}); !errors.Is(err, full) || n != 0 {
		t.Errorf("Export = %d, %v, want the writer's error", n, err)
	}
}

// TestImportLeavesQuarantine checks that an import changes nothing of what is in quarantine.
func TestImportLeavesQuarantine(t *testing.T) {
	t.Parallel()
	w := newFixture()
	w.runImport(t, false, plainEntry(document("com.example/a", "1.0.0")),
		plainEntry(document("com.example/b", "1.0.0")))
	for target, reason := range map[quarantining.Target]string{
		{ServerName: "com.example/a", Version: "1.0.0"}: "one", {ServerName: "com.example/b"}: "all",
	} {
		o := quarantining.New(quarantining.Ports{
			Ports:  change.Ports{Transactions: w.runner, Writer: w.servers, Quarantine: w.quarantine, Acts: noActs{}},
			Clock:  clocktest.NewManual(now),
			Events: newEvents(w.runner.db),
		})
		if _, err := o.Add(t.Context(), authority.Operator(), quarantining.Draft{
			Target: target, Reason: reason,
		}); err != nil {
			t.Fatal(err)
		}
	}
	before := w.exportAll(t)
	w.runner.twice = true
	_, outcomes := w.runImport(t, false, plainEntry(document("com.example/a", "1.0.0")),
		plainEntry(document("com.example/a", "0.9.0")),
		plainEntry(document("com.example/b", "1.0.0")), plainEntry(document("com.example/b", "2.0.0")))
	want := []string{
		"refused com.example/a@1.0.0 com.example/a 1.0.0 is in quarantine: one", "taken com.example/a@0.9.0",
		"refused com.example/b@1.0.0 com.example/b is in quarantine: all",
		"refused com.example/b@2.0.0 com.example/b is in quarantine: all",
	}
	slices.Sort(outcomes)
	slices.Sort(want)
	if !slices.Equal(outcomes, want) {
		t.Errorf("outcomes = %q, want %q", outcomes, want)
	}
	after := w.exportAll(t)
	i := slices.IndexFunc(after, func(r registry.Record) bool { return r.Version.String() == "0.9.0" })
	if i < 0 || !after[i].Latest {
		t.Fatalf("the other version is %+v, want it the latest", after)
	}
	for _, r := range append(after[:i], after[i+1:]...) {
		if b := slices.IndexFunc(before, func(q registry.Record) bool {
			return q.Name == r.Name && q.Version == r.Version
		}); r.Status != registry.StatusDeleted || before[b].StatusMessage != r.StatusMessage {
			t.Errorf("%+v was %+v", r, before[b])
		}
	}
}

// noActs records nothing.
type noActs struct{}

func (noActs) Record(context.Context, authority.Act) error { return nil }

// newEvents returns a recorder of events in memory.
func newEvents(db *fakedb.Database) *announce.Recorder {
	return announce.New(announce.Ports{
		Webhooks: fakedb.NewWebhooks(db), Deliveries: fakedb.NewDeliveries(db), Encoder: eventdatatest.Encoder{},
		Clock: clocktest.NewManual(now), Entropy: fixedEntropy{},
	})
}

// fixedEntropy fills everything with zeros.
type fixedEntropy struct{}

func (fixedEntropy) Fill(p []byte) { clear(p) }

// TestQuarantineMoves checks that what is exported in quarantine is in quarantine where it is
// imported, and gets there the status that it had before, when it is released.
func TestQuarantineMoves(t *testing.T) {
	t.Parallel()
	from, to := newFixture(), newFixture()
	remote := func(n int) string { return fmt.Sprintf(`"remotes":[{"type":"sse","url":"https://%d.example"}]`, n) }
	deprecated := recordedEntry(2, document("com.example/b", "2.0.0", remote(3)))
	deprecated.Recorded.Status, deprecated.Recorded.StatusMessage = "deprecated", "use 3"
	from.runImport(t, false, recordedEntry(1, document("com.example/a", "1.0.0", remote(1))),
		recordedEntry(2, document("com.example/a", "2.0.0")),
		recordedEntry(1, document("com.example/b", "1.0.0", remote(2))), deprecated)
	from.hide(t, "com.example/a", "1.0.0", "one")
	from.hide(t, "com.example/b", "1.0.0", "this")
	from.hide(t, "com.example/b", "", "all")
	entries := from.exportEntries(t)
	if counts, outcomes := to.runImport(t, false, entries...); counts.Taken != 4 {
		t.Fatalf("%+v %q", counts, outcomes)
	}
	requireEqual(t, to.exportAll(t), from.exportAll(t))
	if counts, outcomes := to.runImport(t, false, entries...); counts.Skipped != 4 {
		t.Fatalf("%+v %q", counts, outcomes)
	}
	cut := newFixture()
	if counts, outcomes := cut.runImport(t, false, entries[:3]...); counts.Taken != 3 { // the file ends within a server
		t.Fatalf("%+v %q", counts, outcomes)
	}
	if counts, outcomes := cut.runImport(t, false, entries...); counts.Taken != 1 || counts.Skipped != 3 {
		t.Fatalf("%+v %q", counts, outcomes)
	}
	for _, server := range []string{"com.example/a", "com.example/b"} {
		from.requireSameQuarantine(t, to, server)
		from.requireSameQuarantine(t, cut, server)
	}
	// A record without the mark, as of an older export, is refused by the entry that is here.
	if _, outcomes := to.runImport(t, false,
		recordedEntry(3, document("com.example/b", "3.0.0"))); !strings.Contains(outcomes[0],
		"refused com.example/b@3.0.0 com.example/b is in quarantine: all") {
		t.Errorf("a version of a server in quarantine: %q", outcomes)
	}
	// A server that is here partly is hidden wholly.
	partly := newFixture()
	partly.runImport(t, false, recordedEntry(1, document("com.example/b", "1.0.0", remote(2))))
	if counts, outcomes := partly.runImport(t, false, entries[2:]...); counts.Taken != 1 || counts.Skipped != 1 {
		t.Fatalf("%+v %q", counts, outcomes)
	}
	for _, r := range partly.exportAll(t) {
		if r.Status != registry.StatusDeleted {
			t.Errorf("%s is %s, want all of the server hidden", r.Version, r.Status)
		}
	}
}

// TestBadQuarantineIsRefused checks that a record with a broken quarantine is not stored, because
// it would be listed without one.
func TestBadQuarantineIsRefused(t *testing.T) {
	t.Parallel()
	good := recordsource.QuarantineEntry{Reason: "bad"}
	for what, q := range map[string]recordsource.Quarantine{
		"no entries": {Status: "active"}, "no reason": {Status: "active", Entries: []recordsource.QuarantineEntry{{}}},
		"no status": {Entries: []recordsource.QuarantineEntry{good}},
		"the future": {
			Status: "active", Entries: []recordsource.QuarantineEntry{{Reason: "bad", Since: now.AddDate(1, 0, 0)}},
		},
	} {
		e := recordedEntry(1, document("com.example/a", "1.0.0"))
		e.Recorded.Quarantine = &q
		w := newFixture()
		if counts, _ := w.runImport(t, false, e); counts.Refused != 1 || len(w.exportAll(t)) != 0 {
			t.Errorf("%s: %+v, want it refused", what, counts)
		}
	}
}

// requireSameQuarantine checks that another registry has the same of a server in quarantine.
func (w *fixture) requireSameQuarantine(t *testing.T, other *fixture, server string) {
	t.Helper()
	name := parse(t, registry.ParseName, server)
	got, err1 := other.quarantine.Entries(t.Context(), name)
	want, err2 := w.quarantine.Entries(t.Context(), name)
	gotPrior, err3 := other.quarantine.PriorStatuses(t.Context(), name)
	wantPrior, err4 := w.quarantine.PriorStatuses(t.Context(), name)
	if err := errors.Join(err1, err2, err3, err4); err != nil || !slices.Equal(got, want) ||
		!slices.Equal(gotPrior, wantPrior) {
		t.Errorf("%s: %+v %+v, %v; want %+v %+v", server, got, gotPrior, err, want, wantPrior)
	}
}

func parse[T any](t *testing.T, parse func(string) (T, error), s string) T {
	t.Helper()
	v, err := parse(s)
	must.Succeed(t, err)
	return v
}

// hide puts a version, or a whole server, in quarantine.
func (w *fixture) hide(t *testing.T, server, version, reason string) {
	t.Helper()
	_, err := quarantining.New(quarantining.Ports{
		Ports:   change.Ports{Transactions: w.runner, Writer: w.servers, Quarantine: w.quarantine, Acts: noActs{}},
		Mirrors: fakedb.NewMirrors(w.runner.db),
		Events:  newEvents(w.runner.db), Clock: clocktest.NewManual(now),
	}).Add(t.Context(), authority.Operator(), quarantining.Draft{
		Target: quarantining.Target{ServerName: server, Version: version}, Reason: reason,
	})
	must.Succeed(t, err)
}

// exportEntries returns what an import of the export reads.
func (w *fixture) exportEntries(t *testing.T) (all []recordsource.Entry) {
	t.Helper()
	_, err := w.Export(t.Context(), func(r recordsource.Exported) error {
		held := r.Held
		e := plainEntry(string(r.Document))
		e.Recorded = recordsource.Recorded{
			Status: string(r.Status), StatusMessage: r.StatusMessage, StatusChangedAt: r.StatusChangedAt,
			PublishedAt: r.PublishedAt, UpdatedAt: r.UpdatedAt,
		}
		if len(held.Entries) > 0 {
			q := &recordsource.Quarantine{
				Status: string(held.Prior.Status), StatusMessage: held.Prior.Message,
				StatusChangedAt: held.Prior.ChangedAt,
			}
			for _, entry := range held.Entries {
				q.Entries = append(q.Entries, recordsource.QuarantineEntry{
					Server: entry.Version == registry.Version{}, Reason: string(entry.Reason), Since: entry.Since,
					By: string(entry.By),
				})
			}
			e.Recorded.Quarantine = q
		}
		for _, l := range r.Tools {
			e.Recorded.Tools = append(e.Recorded.Tools, recordsource.ToolList{
				Remote: l.Remote, Package: l.Package, Source: string(l.Source), State: string(l.State), By: l.By.Key, At: l.At,
				Content: l.List.Canonical(),
			})
		}
		all = append(all, e)
		return nil
	})
	must.Succeed(t, err)
	return all
}

// TestToolListsMove checks that approved tool lists are exported and imported with their version, and that others are
// exported only. A list that is none refuses its version.
func TestToolListsMove(t *testing.T) {
	t.Parallel()
	w := newFixture()
	text := `{"name":"com.example/a","description":"d","version":"1.0.0","remotes":[{"type":"sse","url":"https://a.example/sse"}]}`
	w.runImport(t, false, plainEntry(text), plainEntry(document("com.example/b", "1.0.0")))
	name, err := registry.ParseName("com.example/a")
	must.Succeed(t, err)
	version, err := registry.ParseVersion("1.0.0")
	must.Succeed(t, err)
	for state, tool := range map[tools.State]string{tools.Approved: "a", tools.Differs: "b"} {
		list, err := tools.Parse([]byte(`{"tools":[{"name":"` + tool + `"}]}`))
		must.Succeed(t, err)
		must.Succeed(t, w.lists.Put(t.Context(), tools.Stored{
			Name: name, Version: version, Part: tools.PartsOf([]byte(text))[0].Key, Source: tools.Recorded, State: state, At: now,
			By: tools.Sender{Key: "ada"}, List: list,
		}))
	}
	entries := w.exportEntries(t)
	if len(entries[0].Recorded.Tools) != 2 || len(entries[1].Recorded.Tools) > 0 {
		t.Fatalf("the export has %+v", entries)
	}
	again := newFixture()
	again.runImport(t, false, entries...)
	want, err := w.lists.OfVersion(t.Context(), name, version)
	must.Succeed(t, err)
	if got, err := again.lists.OfVersion(t.Context(), name, version); err != nil || !reflect.DeepEqual(got, want[:1]) {
		t.Errorf("imported are %+v, %v, want %+v", got, err, want[:1])
	}
	entries[0].Recorded.Tools[0].Content = []byte(`{"tools":[{"name":"a"},{"name":"a"}]}`)
	counts, outcomes := newFixture().runImport(t, false, entries[0])
	if counts.Refused != 1 || !strings.Contains(outcomes[0], "the tool list of https://a.example/sse") {
		t.Errorf("a broken list: %+v, %+v", counts, outcomes)
	}
}
