package authrecords_test

import (
	"context"
	"fmt"
	"net/netip"
	"regexp"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/relational/postgres/postgrestest"
	"github.com/tollgate-dev/tollgate/adapters/relational/relationaltest"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/history"
	"github.com/tollgate-dev/tollgate/core/auth/risk"
	"github.com/tollgate-dev/tollgate/ports/authstore/authstoretest"
)

// countedSignIn is a sign-in with values of all kinds, with the additions that are learnt from it.
func countedSignIn(t testing.TB, address string, location risk.Location) (history.Observation, []history.Addition) {
	t.Helper()
	device, err := auth.NewDeviceInfo(auth.DeviceFields{
		UserAgent:        "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0",
		ScreenResolution: "1920x1080",
		Timezone:         "Europe/Berlin", Language: "de-DE",
	})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2031, time.March, 14, 15, 0, 0, 0, time.UTC)
	o := history.Observe(netip.MustParseAddr(address), device, risk.Signals{At: at, Location: location})
	return o, history.Learn(o, history.Counts{Person: history.Table{}, Everyone: history.Table{}})
}

// insertCounts returns the statements that store 50 counts of each of 2,000 people, and 50,000 of
// everybody.
func insertCounts(kind string) []string {
	numbers := func(n int) string { return fmt.Sprintf("generate_series(1, %d) AS n (i)", n) }
	id, at := func(n string) string { return "('00000000-1234-4abc-8def-' || lpad((" + n + ")::text, 12, '0'))::uuid" },
		"'2031-03-01T00:00:00Z'"
	empty := "''::bytea"
	if kind == relationaltest.SQLite {
		numbers = func(n int) string {
			return fmt.Sprintf(
				"(WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) SELECT i FROM n) AS n",
				n)
		}
		id, at, empty = func(n string) string { return "printf('00000000-1234-4abc-8def-%012d', " + n + ")" },
			"1930089600000000", "x''"
	}
	statements := []string{
		`INSERT INTO accounts (id, email, name, phone, password_hash, state, mfa_secret, mfa_active, mfa_last_step)
			SELECT ` + id("n.i") + ", 'p' || n.i || '@example.com', '', '', '', 'active', " + empty +
			", false, 0 FROM " + numbers(2000),
		`INSERT INTO history_counts (user_id, feature, value, sum, last_at, version, period)
			SELECT ` + id("1 + n.i / 50 % 2000") + ", 10 + n.i % 25, 'value ' || n.i, 1, " + at + ", 0, 2233 FROM " +
			numbers(100_000),
		`INSERT INTO history_totals (feature, value, sum, last_at, version, period)
			SELECT 10 + n.i % 25, 'value ' || n.i, 1, ` + at + ", 0, 2233 FROM " + numbers(50_000),
	}
	if kind == relationaltest.PostgreSQL {
		statements = append(statements, "VACUUM ANALYZE")
	}
	return statements
}

// TestReadingCountsIsOneIndexedQuery reads the plan of the query of a sign-in.
func TestReadingCountsIsOneIndexedQuery(t *testing.T) {
	lookup := map[string]*regexp.Regexp{
		relationaltest.PostgreSQL: regexp.MustCompile(`Index (Only )?Scan using history_(counts|totals)_pkey`),
		relationaltest.SQLite:     regexp.MustCompile(`SEARCH c USING (PRIMARY KEY|INDEX)`),
	}
	whole := map[string]*regexp.Regexp{
		relationaltest.PostgreSQL: regexp.MustCompile(`Seq Scan`),
		relationaltest.SQLite:     regexp.MustCompile(`SCAN c|AUTOMATIC`),
	}
	o, _ := countedSignIn(t, "203.0.113.7", risk.Location{
		State: risk.Known, Country: "DE", Network: risk.Network{ASN: 64500},
	})
	for kind, open := range relationaltest.Databases(t) {
		t.Run(kind, func(t *testing.T) {
			db := open(t)
			for _, statement := range insertCounts(kind) {
				if err := db.Execute(t.Context(), statement); err != nil {
					t.Fatal(err)
				}
			}
			store := historyOf(newStores(t, db.DB))
			plans, err := db.Plans(t.Context(), func(ctx context.Context) error {
				_, err := store.Read(ctx, person(7), o.PersonValues(), o.EveryoneValues())
				return err
			})
			if err != nil || len(plans) != 1 {
				t.Fatalf("%d queries, %v, want one", len(plans), err)
			}
			for query, plan := range plans {
				if found := lookup[kind].FindAllString(plan, -1); len(found) != 2 || whole[kind].MatchString(plan) {
					t.Errorf("the query does not look up the values by the two primary keys:\n%.300s\n%s", query, plan)
				}
			}
		})
	}
}

// TestNoAddressIsStored reads all columns of the tables of the history, and looks for the addresses
// of the sign-ins and their prefixes.
func TestNoAddressIsStored(t *testing.T) {
	for kind, open := range relationaltest.Databases(t) {
		t.Run(kind, func(t *testing.T) {
			db := open(t)
			stores := openStores(t, db)
			for _, err := range []error{
				stores.Accounts.Create(t.Context(), authstoretest.Account(0)), createDevice(t, stores),
				stores.Sessions.Create(t.Context(), authstoretest.Living(0, 1)),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
			for _, address := range []string{"203.0.113.7", "2001:db8:77:88::9"} {
				o, additions := countedSignIn(t, address, risk.Location{})
				if err := stores.History.Add(t.Context(), authstoretest.Account(0).ID, additions, o.At()); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := stores.History.Gather(t.Context()); err != nil {
				t.Fatal(err)
			}
			o, additions := countedSignIn(t, "198.51.100.9", risk.Location{})
			if err := stores.History.Add(t.Context(), authstoretest.Account(0).ID, additions, o.At()); err != nil {
				t.Fatal(err)
			}
			if err := stores.History.Defer(t.Context(), authstoretest.Living(0, 1), additions); err != nil {
				t.Fatal(err)
			}
			for _, table := range []string{
				"history_counts WHERE value", "history_totals WHERE value", "history_additions WHERE additions",
				"history_deferred WHERE additions",
			} {
				for text, found := range map[string]bool{
					"203.0": false, "198.51": false, "2001:": false, "db8:": false, ":77": false, "Firefox": true,
				} {
					n, err := db.QueryInt(t.Context(), "SELECT count(*) FROM "+table+" LIKE '%"+text+"%'")
					if err != nil || n > 0 != found {
						t.Errorf("%d rows of %s contain %q, %v", n, table, text, err)
					}
				}
			}
		})
	}
}

func createDevice(t *testing.T, s authstoretest.Stores) error {
	t.Helper()
	_, _, err := s.Devices.Ensure(t.Context(), authstoretest.Device(0, 0))
	return err
}

// TestAccountTakesCountsAlong deletes an account as an operator does with SQL, and looks for rows
// of the person.
func TestAccountTakesCountsAlong(t *testing.T) {
	for kind, open := range relationaltest.Databases(t) {
		t.Run(kind, func(t *testing.T) {
			db := open(t)
			stores := openStores(t, db)
			for n := range 2 {
				if err := stores.Accounts.Create(t.Context(), authstoretest.Account(n)); err != nil {
					t.Fatal(err)
				}
				o, additions := countedSignIn(t, "203.0.113.7", risk.Location{})
				if err := stores.History.Add(t.Context(), authstoretest.Account(n).ID, additions, o.At()); err != nil {
					t.Fatal(err)
				}
			}
			all, err := db.QueryInt(t.Context(), "SELECT count(*) FROM history_counts")
			if err != nil || all == 0 {
				t.Fatal(all, err)
			}
			if err := db.Execute(t.Context(),
				"DELETE FROM accounts WHERE id = '"+string(authstoretest.Account(0).ID)+"'"); err != nil {
				t.Fatal(err)
			}
			if left, err := db.QueryInt(t.Context(), "SELECT count(*) FROM history_counts"); err != nil ||
				left != all/2 {
				t.Errorf("%d of %d rows are left, %v, want half", left, all, err)
			}
		})
	}
}

// BenchmarkReadCounts measures the query of a sign-in, in tables of 100,000 and 50,000 rows.
func BenchmarkReadCounts(b *testing.B) {
	o, additions := countedSignIn(b, "203.0.113.7", risk.Location{
		State: risk.Known, Country: "DE", Network: risk.Network{ASN: 64500},
	})
	for kind, open := range map[string]func() *relationaltest.Database{
		relationaltest.SQLite: func() *relationaltest.Database { return relationaltest.NewSQLite(b) },
		relationaltest.PostgreSQL: func() *relationaltest.Database {
			return relationaltest.OpenPostgres(b, postgrestest.NewEmpty(b))
		},
	} {
		b.Run(kind, func(b *testing.B) {
			db := open()
			if _, err := db.Migrate(b.Context()); err != nil {
				b.Fatal(err)
			}
			for _, statement := range insertCounts(kind) {
				if err := db.Execute(b.Context(), statement); err != nil {
					b.Fatal(err)
				}
			}
			store := historyOf(newStores(b, db.DB))
			b.Run("read", func(b *testing.B) {
				for b.Loop() {
					if _, err := store.Read(b.Context(), person(7), o.PersonValues(), o.EveryoneValues()); err != nil {
						b.Fatal(err)
					}
				}
			})
			b.Run("add", func(b *testing.B) {
				for b.Loop() {
					if err := store.Add(b.Context(), person(7), additions, o.At()); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}
