package authrecords_test

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/relational/authrecords"
	"github.com/tollgate-dev/tollgate/adapters/relational/relationaltest"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/test/must"
)

var auditEvents = flag.Int("audit-events", 1_000_000,
	"events of the large audit log in benchmarks, a multiple of 100,000")

// loggedPart is how many events one statement adds.
const loggedPart = 50_000

// insertEvents returns the statement that adds the events first+1 to first+loggedPart. Every tenth
// event is of the busy person. The others are of total/300 persons in turns, so that the events of
// a page are all over the table. Identifiers are distributed like random ones.
func insertEvents(kind string, first, total int) string {
	number, at, id := fmt.Sprintf("generate_series(%d, %d) AS n (i)", first+1, first+loggedPart),
		"'2026-01-01T00:00:00Z'::timestamptz + n.i * interval '1 second'", "md5(n.i::text)::uuid"
	user := func(n string) string { return "('00000000-1234-4abc-8def-' || lpad((" + n + ")::text, 12, '0'))::uuid" }
	if kind == relationaltest.SQLite {
		number = fmt.Sprintf(
			"(WITH RECURSIVE n (i) AS (SELECT %d UNION ALL SELECT i + 1 FROM n WHERE i < %d) SELECT i FROM n) AS n",
			first+1, first+loggedPart)
		at, id = "1767225600000000 + n.i * 1000000", "lower(hex(randomblob(16)))"
		user = func(n string) string { return "printf('00000000-1234-4abc-8def-%012d', " + n + ")" }
	}
	return `INSERT INTO audit_events (id, time, type, user_id, success, details)
		SELECT ` + id + ", " + at +
		", CASE n.i / 1000 % 3 WHEN 0 THEN 'RISK_EVALUATION' ELSE 'LOGIN_ATTEMPT' END, CASE n.i % 10 WHEN 0 THEN " +
		user("0") + " ELSE " + user(fmt.Sprintf("1 + n.i %% %d", total/300)) + ` END,
		n.i % 7 = 0, '{"ipAddress":"192.0.2.7","deviceIdentity":"b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9"}' FROM ` + number
}

// BenchmarkAuditSearch measures a page of 100 events of a person in a small log and in a large one,
// for a person with about 270 events and for a person with a tenth of all events.
//
//	go test -run xxx -bench AuditSearch ./adapters/relational/authrecords -args -audit-events 10000000
func BenchmarkAuditSearch(b *testing.B) {
	for _, total := range []int{100_000, *auditEvents} {
		b.Run(fmt.Sprint(total), func(b *testing.B) {
			relationaltest.MeasureInEach(b, func(b *testing.B, db *relationaltest.Database) {
				log := newAuditLog(b, db, total)
				for name, q := range map[string]authstore.AuditQuery{
					"person":          {Limit: 100},
					"person, by type": {Limit: 100, Category: audit.RiskEvaluation},
					"busy":            {Limit: 100, Subject: audit.Subject(person(0))},
				} {
					b.Run(name, func(b *testing.B) { searchRepeatedly(b, log, q, total/300) })
				}
			})
		})
	}
}

// searchRepeatedly makes one search after the other. Each is for another person, unless the query
// names a person.
func searchRepeatedly(b *testing.B, log *authrecords.AuditLog, q authstore.AuditQuery, people int) {
	b.Helper()
	all := q.Subject == ""
	for n := 0; b.Loop(); n++ {
		if all {
			q.Subject = audit.Subject(person(1 + n*7919%people))
		}
		if events, matches, err := log.Search(b.Context(), q); err != nil || len(events) < 50 || matches < len(events) {
			b.Fatal(len(events), matches, err)
		}
	}
}

func person(n int) auth.UserID { return auth.UserID(fmt.Sprintf("00000000-1234-4abc-8def-%012d", n)) }

func newAuditLog(b *testing.B, db *relationaltest.Database, total int) *authrecords.AuditLog {
	b.Helper()
	for first := 0; first < total; first += loggedPart {
		db.Fill(b, insertEvents(db.Kind(), first, total))
	}
	if db.Kind() == relationaltest.PostgreSQL {
		db.Fill(b, "VACUUM ANALYZE audit_events")
	}
	return authrecords.NewAuditLog(db.DB)
}

// BenchmarkAuditHistory measures the first and the last page of a person with events over a year,
// before any hour is counted and after all days except the last are.
//
//	go test -run xxx -bench AuditHistory ./adapters/relational/authrecords -args -audit-events 1000000
func BenchmarkAuditHistory(b *testing.B) {
	relationaltest.MeasureInEach(b, func(b *testing.B, db *relationaltest.Database) {
		log := newHistory(b, db, *auditEvents)
		pages := func(b *testing.B) {
			for name, offset := range map[string]int{"first page": 0, "last page": *auditEvents - 100} {
				b.Run(name, func(b *testing.B) {
					for b.Loop() {
						events, total, err := log.Search(b.Context(), authstore.AuditQuery{
							Subject: audit.Subject(person(0)), Limit: 100, Offset: offset,
						})
						if err != nil || len(events) != 100 || total != *auditEvents {
							b.Fatal(len(events), total, err)
						}
					}
				})
			}
		}
		b.Run("not counted", pages)
		began, until := time.Now(), historyStart.Add(364*24*time.Hour)
		for more := true; more; {
			var err error
			if more, err = log.CountHour(b.Context(), until); err != nil {
				b.Fatal(err)
			}
		}
		b.Logf("counted %d events in %v", *auditEvents, time.Since(began))
		b.Run("counted", pages)
	})
}

var historyStart = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// newHistory returns a log with the events of one person at equal intervals over a year.
func newHistory(b *testing.B, db *relationaltest.Database, total int) *authrecords.AuditLog {
	b.Helper()
	step := 365 * 24 * time.Hour / time.Duration(total)
	for first := 0; first < total; first += loggedPart {
		numbers := fmt.Sprintf("generate_series(%d, %d) AS n (i)", first, first+loggedPart-1)
		at := fmt.Sprintf("'2026-01-01T00:00:00Z'::timestamptz + n.i * interval '%d microseconds'", step.Microseconds())
		id := "md5(n.i::text)::uuid"
		if db.Kind() == relationaltest.SQLite {
			numbers = fmt.Sprintf(
				"(WITH RECURSIVE n (i) AS (SELECT %d UNION ALL SELECT i + 1 FROM n WHERE i < %d) SELECT i FROM n) AS n",
				first, first+loggedPart-1)
			at, id = fmt.Sprintf("%d + n.i * %d", historyStart.UnixMicro(), step.Microseconds()),
				"lower(hex(randomblob(16)))"
		}
		db.Fill(b,
			"INSERT INTO audit_events (id, time, type, user_id, success, details) SELECT "+id+", "+at+
				", CASE n.i % 2 WHEN 0 THEN 'RISK_EVALUATION' ELSE 'LOGIN_ATTEMPT' END, '"+string(person(0))+
				"', true, '{}' FROM "+numbers)
	}
	if db.Kind() == relationaltest.PostgreSQL {
		db.Fill(b, "VACUUM ANALYZE audit_events")
	}
	return authrecords.NewAuditLog(db.DB)
}

// BenchmarkAuditFilters measures the newest page, and the first of the stream, of a rare and of a
// frequent actor and of a server, in a log of 100,000 events.
//
//	go test -run xxx -bench AuditFilters ./adapters/relational/authrecords
func BenchmarkAuditFilters(b *testing.B) {
	relationaltest.MeasureInEach(b, func(b *testing.B, db *relationaltest.Database) {
		log := newAuditLog(b, db, 0)
		db.Fill(b, manyEvents(db.Kind())...)
		for name, q := range map[string]authstore.AuditQuery{
			"actor": auditFilters["actor"], "server": auditFilters["server"],
			"frequent actor": {Actor: "person:0", Limit: 100},
		} {
			for order, read := range auditReads(log, q) {
				b.Run(name+", "+order, func(b *testing.B) {
					for b.Loop() {
						must.Succeed(b, read(b.Context(), 30))
					}
				})
			}
		}
	})
}
