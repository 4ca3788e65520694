package registryrecords_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/relational/relationaltest"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/event"
	"github.com/tollgate-dev/tollgate/core/registry/mirror"
)

// sqlWords are the parts of statements that the databases write differently.
type sqlWords struct{ at, empty, hash string }

func wordsOf(kind string) sqlWords {
	if kind == relationaltest.SQLite {
		return sqlWords{"1767225600000000 + n.i * 1000000", "CAST('' AS BLOB)", "zeroblob(32)"}
	}
	return sqlWords{
		"'2026-01-01T00:00:00Z'::timestamptz + n.i * interval '1 second'", "''::bytea",
		"decode(repeat('00', 32), 'hex')",
	}
}

// numbers returns a table n with the numbers i from 1.
func numbers(kind string, to int) string {
	if kind == relationaltest.SQLite {
		return fmt.Sprintf(
			"(WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) SELECT i FROM n) AS n", to)
	}
	return fmt.Sprintf("generate_series(1, %d) AS n (i)", to)
}

// insertBacklog returns the statements that add 50 webhooks, with as many deliveries as Rows says: of the first one, 10,000 deliveries
// have ended and then 100,000 to 10,000 servers are pending; of the second one, 10,000 are dead; of
// the third one, 10 are pending, after all the others.
func insertBacklog(kind string) []string {
	words, few := wordsOf(kind), relationaltest.Rows(kind, 10_000)
	deliveries := func(webhook, state string, count int) string {
		ended := "NULL"
		if state != "pending" {
			ended = words.at
		}
		return `INSERT INTO webhook_deliveries (webhook, event, type, name, version, body, state, since, attempts, next_at, ended_at, problem)
			SELECT '` + webhook + "', '" + webhook + state +
			"' || n.i, 'published', 'com.example/s' || (n.i % 10000), '1.0.0', " + words.empty + ", '" +
			state + "', " + words.at + ", 0, " + words.at + ", " + ended + ", '' FROM " + numbers(kind, count)
	}
	return []string{
		`INSERT INTO webhooks (id, url, events, pattern, secret, created_at)
			SELECT 'w' || n.i, 'https://example.com', 'published', '*', ` + words.empty + ", " + words.at + " FROM " +
			numbers(kind, 50),
		deliveries("w1", "delivered", few), deliveries("w2", "dead", few), deliveries("w1", "pending", 10*few),
		deliveries("w3", "pending", 10),
	}
}

// insertMirrored returns the statements that add what two mirrors have taken: 50,000 servers each, as Rows,
// with two versions.
func insertMirrored(kind string) []string {
	words := wordsOf(kind)
	return []string{`INSERT INTO mirrored_versions (mirror, name, version, hash, status, message, published_at, review)
		SELECT m.name, 'com.example/s' || (n.i + 100000), v.version, ` + words.hash + ", 'active', '', " + words.at +
		", '' FROM " + numbers(kind, relationaltest.Rows(kind, 50_000)) +
		", (SELECT 'one' AS name UNION ALL SELECT 'two') AS m, (SELECT '1.0.0' AS version UNION ALL SELECT '2.0.0') AS v"}
}

var (
	// unordered matches a plan of SQLite that reads all rows of a large table or sorts rows.
	unordered = regexp.MustCompile(`SCAN (?:d|e|webhook_deliveries|mirrored_versions)\b|AUTOMATIC|TEMP B-TREE`)
)

// checkRowsRead checks that a call reads about the rows that it returns: on SQLite by an index in
// order, on PostgreSQL at most so many rows in each step, also with a plan for any arguments.
func checkRowsRead(
	t *testing.T, db *relationaltest.Database, most int, call func(ctx context.Context) error,
) {
	t.Helper()
	if db.Kind() == relationaltest.SQLite {
		plans, err := db.Plans(t.Context(), call)
		if err != nil || len(plans) == 0 {
			t.Fatalf("%d plans, %v", len(plans), err)
		}
		for query, plan := range plans {
			if unordered.MatchString(plan) {
				t.Errorf("it reads or sorts more than it returns:\n%s\n%s", query, plan)
			}
		}
		return
	}
	for _, generic := range []bool{false, true} {
		plans, err := db.Executions(t.Context(), generic, call)
		if err != nil || len(plans) == 0 {
			t.Fatalf("%d plans, %v", len(plans), err)
		}
		for query, plan := range plans {
			if rows := relationaltest.MostRows(plan); rows > most {
				t.Errorf("a step reads %d rows, want %d at most, with a plan for any arguments: %t\n%s\n%s", rows, most,
					generic, query, plan)
			}
		}
	}
}

// checkPlansOfBacklogs checks that deliveries which are due are found without reading the
// others, while 100,000 are pending.
func checkPlansOfBacklogs(t *testing.T, db *relationaltest.Database) {
	t.Helper()
	deliveries, now := newStores(db).Deliveries, time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	for webhook, count := range map[event.WebhookID]int{"w1": 4, "w2": 0, "w3": 4} {
		t.Run("due to "+string(webhook), func(t *testing.T) {
			checkRowsRead(t, db, 50, func(ctx context.Context) error {
				due, err := deliveries.Due(ctx, webhook, now, 4)
				if len(due) != count {
					t.Errorf("Due returned %d deliveries, want %d", len(due), count)
				}
				return err
			})
		})
	}
	for at, count := range map[time.Time]int{now: 2, now.AddDate(-2, 0, 0): 0} {
		t.Run("waiting at "+at.Format(time.DateOnly), func(t *testing.T) {
			checkRowsRead(t, db, 50, func(ctx context.Context) error {
				waiting, err := deliveries.Waiting(ctx, at)
				if len(waiting) != count {
					t.Errorf("Waiting returned %q, want %d webhooks", waiting, count)
				}
				return err
			})
		})
	}
}

// checkPlansOfMirrored checks that a page of what a mirror has taken is read alone,
// wherever it begins.
func checkPlansOfMirrored(t *testing.T, db *relationaltest.Database) {
	t.Helper()
	const servers, first = 100, 100_000
	mirrored, all := newStores(db).Mirrored, relationaltest.Rows(db.Kind(), 50_000)
	nameOf := func(n int) string { return fmt.Sprintf("com.example/s%d", first+n) }
	for _, after := range []string{"", nameOf(all / 2), nameOf(all - servers)} {
		t.Run("after "+strings.TrimPrefix(after, "com.example/"), func(t *testing.T) {
			checkRowsRead(t, db, 3*servers, func(ctx context.Context) error {
				page, err := mirrored.Page(ctx, "two", after, servers)
				checkTracked(t, page, 2*servers)
				return err
			})
		})
	}
	t.Run("of servers", func(t *testing.T) {
		names := make([]registry.Name, servers)
		for i := range names {
			names[i] = parse(t, registry.ParseName, nameOf(1+all/servers*i))
		}
		checkRowsRead(t, db, 3*servers, func(ctx context.Context) error {
			found, err := mirrored.OfServers(ctx, "two", names)
			checkTracked(t, found, 2*servers)
			return err
		})
	})
}

func checkTracked(t *testing.T, got []mirror.Tracked, want int) {
	t.Helper()
	if len(got) != want {
		t.Errorf("%d versions were read, want %d", len(got), want)
	}
}
