package authrecords_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/relational/authrecords"
	"github.com/tollgate-dev/tollgate/adapters/relational/postgres/postgrestest"
	"github.com/tollgate-dev/tollgate/adapters/relational/relationaltest"
	"github.com/tollgate-dev/tollgate/adapters/relational/sqlite"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/authstore/authstoretest"
	"github.com/tollgate-dev/tollgate/test/must"
)

var firstEvent = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// appendEvent appends an event n seconds after firstEvent.
func appendEvent(ctx context.Context, t testing.TB, log authstore.AuditLog, n int) audit.EventID {
	t.Helper()
	e := audit.Event{
		ID: audit.EventID(fmt.Sprintf("00000000-1234-4abc-8def-%012d", n)), Time: firstEvent.Add(time.Duration(n) * time.Second),
		Category: audit.LoginAttempt,
	}
	must.Succeed(t, log.Append(ctx, e))
	return e.ID
}

// wantStream fails unless the stream after an event has the events of the numbers.
func wantStream(t *testing.T, log authstore.AuditLog, after audit.EventID, numbers ...int) {
	t.Helper()
	got, _ := authstoretest.Followed(t, log, authstore.AuditQuery{Limit: 2}, authstore.AuditPlace{ID: after})
	var of []int
	for _, e := range got {
		of = append(of, int(e.Time.Sub(firstEvent)/time.Second))
	}
	if fmt.Sprint(of) != fmt.Sprint(numbers) {
		t.Errorf("after %q the stream has %v, want %v", after, of, numbers)
	}
}

// TestFollowOnTwoInstances lets writers and a reader use two instances.
func TestFollowOnTwoInstances(t *testing.T) {
	relationaltest.InEach(t, func(t *testing.T, db *relationaltest.Database) {
		authstoretest.FollowWriters(t, openStores(t, db), openStores(t, db.OpenAgain(t)))
	})
}

// TestFollowWaitsForOpenTransactions holds transactions open that have events before those of a
// transaction that has ended.
func TestFollowWaitsForOpenTransactions(t *testing.T) {
	open, ok := relationaltest.Databases(t)[relationaltest.PostgreSQL]
	if !ok {
		t.Skip("SQLite has one writer at a time")
	}
	db := open(t)
	log, other := authrecords.NewAuditLog(db.DB), authrecords.NewAuditLog(db.OpenAgain(t).DB)
	first := appendEvent(t.Context(), t, log, 1)
	undone := errors.New("undone")
	hold := func(outcome error, numbers ...int) {
		err := db.Atomically(t.Context(), func(ctx context.Context) error {
			appendEvent(ctx, t, log, numbers[0])
			appendEvent(t.Context(), t, other, numbers[1])
			wantStream(t, other, first) // until the transaction ends
			appendEvent(ctx, t, log, numbers[2])
			wantStream(t, other, first)
			return outcome
		})
		if !errors.Is(err, outcome) {
			t.Fatal(err)
		}
	}
	hold(nil, 2, 3, 4)
	wantStream(t, other, first, 2, 3, 4)
	first = appendEvent(t.Context(), t, log, 5)
	hold(undone, 6, 7, 8)
	wantStream(t, other, first, 7)
	first = appendEvent(t.Context(), t, log, 9)
	afterSavepoint(t, db, func() {
		appendEvent(t.Context(), t, other, 12)
		wantStream(t, other, first)
	})
	wantStream(t, other, first, 11, 12)
}

// afterSavepoint makes a call while a transaction is open that undid the event 10, with which it had
// taken its lock, and has added the event 11.
func afterSavepoint(t *testing.T, db *relationaltest.Database, do func()) {
	t.Helper()
	add := func(n int) string {
		return fmt.Sprintf(`INSERT INTO audit_events (id, time, type, success, details) VALUES
			('00000000-1234-4abc-8def-%012d', '%s', 'LOGIN_ATTEMPT', true, '{}')`, n,
			firstEvent.Add(time.Duration(n)*time.Second).Format(time.RFC3339))
	}
	err := db.Atomically(t.Context(), func(ctx context.Context) error {
		tx, _ := db.Transaction(ctx)
		for _, statement := range []string{"SAVEPOINT s", add(10), "ROLLBACK TO s", add(11)} {
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
		do()
		return nil
	})
	must.Succeed(t, err)
}

// TestFollowRestored continues a stream in a copy of the database: a restored dump, or the file of
// a backup.
func TestFollowRestored(t *testing.T) {
	for kind, restore := range map[string]func(t *testing.T, fill func(db *relationaltest.Database)) *relationaltest.Database{
		relationaltest.SQLite: restoreFile, relationaltest.PostgreSQL: restoreDump,
	} {
		t.Run(kind, func(t *testing.T) {
			var last audit.EventID
			restored := authrecords.NewAuditLog(restore(t, func(db *relationaltest.Database) {
				original := authrecords.NewAuditLog(db.DB)
				appendEvent(t.Context(), t, original, 0)
				for _, n := range []int{5, 3, 4} {
					last = appendEvent(t.Context(), t, original, n)
				}
				if n, err := original.DeleteBefore(t.Context(), firstEvent.Add(time.Second), 1); n != 1 || err != nil {
					t.Fatal(n, err)
				}
			}).DB)
			appendEvent(t.Context(), t, restored, 2)
			appendEvent(t.Context(), t, restored, 1)
			wantStream(t, restored, last, 2, 1)
			wantStream(t, restored, "", 5, 3, 4, 2, 1)
		})
	}
}

func restoreFile(t *testing.T, fill func(db *relationaltest.Database)) *relationaltest.Database {
	t.Helper()
	from, to := t.TempDir(), t.TempDir()
	relationaltest.WriteMigrated(t, from)
	fill(relationaltest.OpenSQLite(t, from))
	if _, err := sqlite.WriteBackup(t.Context(), sqlite.Config{Dir: from}, filepath.Join(to, sqlite.File), false); err != nil {
		t.Fatal(err)
	}
	return relationaltest.OpenSQLite(t, to)
}

func restoreDump(t *testing.T, fill func(db *relationaltest.Database)) *relationaltest.Database {
	t.Helper()
	for _, tool := range []string{"pg_dump", "psql"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("needs %s", tool)
		}
	}
	from, to := postgrestest.NewMigrated(t), postgrestest.NewEmpty(t)
	fill(relationaltest.OpenPostgres(t, from))
	dump := filepath.Join(t.TempDir(), "dump.sql")
	for _, command := range [][]string{
		{"pg_dump", "--no-owner", "--file", dump, from}, {"psql", "-q", "-v", "ON_ERROR_STOP=1", "-f", dump, to},
	} {
		if out, err := exec.CommandContext(t.Context(), command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", command[0], err, out)
		}
	}
	return relationaltest.OpenPostgres(t, to)
}

// eventRows is the number of manyEvents: SQLite plans without statistics, and takes long to insert.
var eventRows = map[string]int{relationaltest.SQLite: 10_000, relationaltest.PostgreSQL: 100_000}

// manyEvents are events, of which one of a thousand was refused, and a third names one of 500 actors, half of them the actor 0,
// and one of 1000 servers.
func manyEvents(kind string) []string {
	count := strconv.Itoa(eventRows[kind])
	numbers, at, id := "generate_series(1, "+count+") AS n (i)",
		"'2026-01-01T00:00:00Z'::timestamptz + n.i * interval '1 second'", "md5(n.i::text)::uuid"
	if kind == relationaltest.SQLite {
		numbers = "(WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < " + count + ") SELECT i FROM n) AS n"
		at, id = "1767225600000000 + n.i * 1000000", "lower(hex(randomblob(16)))"
	}
	statements := []string{`INSERT INTO audit_events (id, time, type, success, details) SELECT ` + id + ", " + at + `,
		CASE n.i % 3 WHEN 0 THEN 'REGISTRY_CHANGE' ELSE 'LOGIN_ATTEMPT' END, n.i % 1000 <> 1, CASE n.i % 3 WHEN 0 THEN
		'{"action":"edit","actor":"person:' || CASE n.i % 2 WHEN 0 THEN 0 ELSE (n.i % 1000) END ||
			'","ipAddress":"192.0.2.7","serverName":"com.example/' || (n.i % 1000) || '"}'
		ELSE '{"ipAddress":"192.0.2.7","userAgent":"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36"}' END FROM ` + numbers}
	if kind == relationaltest.PostgreSQL {
		statements = append(statements, "VACUUM ANALYZE audit_events")
	}
	return statements
}

var auditFilters = map[string]authstore.AuditQuery{
	"actor": {Actor: "person:7", Limit: 100}, "server": {Server: "com.example/7", Limit: 100},
}

// TestAuditPlans checks the plans of reads in one large log.
func TestAuditPlans(t *testing.T) {
	relationaltest.InEach(t, func(t *testing.T, db *relationaltest.Database) {
		db.Fill(t, manyEvents(db.Kind())...)
		log := authrecords.NewAuditLog(db.DB)
		t.Run("filters", func(t *testing.T) { checkPlansOfFilters(t, db, log) })
		t.Run("runs", func(t *testing.T) { checkPlansOfRuns(t, db, log) })
	})
}

// checkPlansOfFilters checks the plans of pages and of the stream with the filters actor and
// server.
func checkPlansOfFilters(t *testing.T, db *relationaltest.Database, log *authrecords.AuditLog) {
	t.Helper()
	for filter, q := range auditFilters {
		for name, read := range auditReads(log, q) {
			plans, err := db.Plans(t.Context(), func(ctx context.Context) error { return read(ctx, eventRows[db.Kind()]/3400) })
			must.Succeed(t, err)
			for query, plan := range plans {
				order := ""
				if name == "stream" && !strings.Contains(query, "_position IS NULL") {
					order = "_position"
				}
				used := regexp.MustCompile("audit_events_by_" + filter + order + `\b`)
				if strings.Contains(query, "audit_events ") && !used.MatchString(plan) {
					t.Errorf("%s with %s does not use its index:\n%s\n%s", name, filter, query, plan)
				}
			}
		}
	}
}

// checkPlansOfRuns checks the plans of pages without the parts of runs, and of those of one.
func checkPlansOfRuns(t *testing.T, db *relationaltest.Database, log *authrecords.AuditLog) {
	t.Helper()
	refused := false
	for index, q := range map[string]authstore.AuditQuery{
		"audit_events_refused":       {Whole: true, Success: &refused, Limit: 50, Most: 1000},
		"audit_events_whole ":        {Whole: true, Limit: 50, Uncounted: true},
		"audit_events_by_run ":       {Run: "import x", Limit: 50, Uncounted: true},
		"audit_events_whole_by_type": {Category: audit.RiskEvaluation, Limit: 50, Most: 1000},
	} {
		plans, err := db.Plans(t.Context(), func(ctx context.Context) error {
			_, _, err := log.Search(ctx, q)
			return err
		})
		if err != nil || len(plans) == 0 {
			t.Fatal(index, err)
		}
		for query, plan := range plans {
			if strings.Contains(query, "audit_events") && !strings.Contains(plan+" ", index) {
				t.Errorf("a page does not use %s:\n%s\n%s", index, query, plan)
			}
		}
	}
}

// auditReads returns a read of the newest page and a read of the stream, which
// expect at least a number of events.
func auditReads(log *authrecords.AuditLog, q authstore.AuditQuery) map[string]func(ctx context.Context, least int) error {
	check := func(events []audit.Event, err error, least int) error {
		if err == nil && len(events) < least {
			err = fmt.Errorf("%d events", len(events))
		}
		return err
	}
	return map[string]func(ctx context.Context, least int) error{
		"page": func(ctx context.Context, least int) error {
			events, err := log.Page(ctx, q, authstore.AuditPlace{})
			return check(events, err, least)
		},
		"stream": func(ctx context.Context, least int) error {
			events, _, err := log.Follow(ctx, q, authstore.AuditPlace{})
			return check(events, err, least)
		},
	}
}
