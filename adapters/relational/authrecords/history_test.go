package authrecords_test

import (
	"context"
	"fmt"
	"math"
	"net/netip"
	"regexp"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/relational/relationaltest"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/history"
	"github.com/tollgate-dev/tollgate/core/auth/risk"
	"github.com/tollgate-dev/tollgate/ports/authstore/authstoretest"
	"github.com/tollgate-dev/tollgate/test/must"
)

// countedSignIn is a sign-in with values of all kinds, with the additions that are learnt from it.
func countedSignIn(t testing.TB, address string, location risk.Location) (history.Observation, []history.Addition) {
	t.Helper()
	device, err := auth.NewDeviceInfo(auth.DeviceFields{
		UserAgent:        "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0",
		ScreenResolution: "1920x1080",
		Timezone:         "Europe/Berlin", Language: "de-DE",
	})
	must.Succeed(t, err)
	at := time.Date(2031, time.March, 14, 15, 0, 0, 0, time.UTC)
	o := history.Observe(netip.MustParseAddr(address), device, risk.Signals{At: at, Location: location})
	return o, history.Learn(o, history.Counts{Person: history.Table{}, Everyone: history.Table{}})
}

// insertCounts returns the statements that store 50 counts of each of 2,000 people, and 50,000 of
// everybody, as Rows.
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
			numbers(relationaltest.Rows(kind, 100_000)),
		`INSERT INTO history_totals (feature, value, sum, last_at, version, period)
			SELECT 10 + n.i % 25, 'value ' || n.i, 1, ` + at + ", 0, 2233 FROM " + numbers(relationaltest.Rows(kind, 50_000)),
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
	relationaltest.InEach(t, func(t *testing.T, db *relationaltest.Database) {
		db.Fill(t, insertCounts(db.Kind())...)
		store := historyOf(newStores(t, db.DB))
		plans, err := db.Plans(t.Context(), func(ctx context.Context) error {
			_, err := store.Read(ctx, person(7), o.PersonValues(), o.EveryoneValues())
			return err
		})
		if err != nil || len(plans) != 1 {
			t.Fatalf("%d queries, %v, want one", len(plans), err)
		}
		for query, plan := range plans {
			if found := lookup[db.Kind()].FindAllString(plan, -1); len(found) != 2 || whole[db.Kind()].MatchString(plan) {
				t.Errorf("the query does not look up the values by the two primary keys:\n%.300s\n%s", query, plan)
			}
		}
	})
}

// TestNoValueIsStored reads all columns of the tables of the history, and looks for the values of
// the sign-ins.
func TestNoValueIsStored(t *testing.T) {
	relationaltest.InEach(t, func(t *testing.T, db *relationaltest.Database) {
		stores := openStores(t, db)
		for _, err := range []error{
			stores.Accounts.Create(t.Context(), authstoretest.Account(0)), createDevice(t, stores),
			stores.Sessions.Create(t.Context(), authstoretest.Living(0, 1)),
		} {
			must.Succeed(t, err)
		}
		for _, address := range []string{"203.0.113.7", "2001:db8:77:88::9"} {
			o, additions := countedSignIn(t, address, risk.Location{
				State: risk.Known, Country: "DE", Network: risk.Network{ASN: 64500},
			})
			must.Succeed(t, stores.History.Add(t.Context(), authstoretest.Account(0).ID, additions, o.At()))
		}
		if _, err := stores.History.Gather(t.Context()); err != nil {
			t.Fatal(err)
		}
		o, additions := countedSignIn(t, "198.51.100.9", risk.Location{})
		must.Succeed(t, stores.History.Add(t.Context(), authstoretest.Account(0).ID, additions, o.At()))
		must.Succeed(t, stores.History.Defer(t.Context(), authstoretest.Living(0, 1), additions))
		for _, table := range []string{
			"history_counts WHERE value", "history_totals WHERE value", "history_additions WHERE additions",
			"history_deferred WHERE additions",
		} {
			for _, text := range []string{
				"203.0", "198.51", "2001:", "db8:", ":77", "Firefox", "Linux", "1920", "Berlin", "de-DE", "64500", "DE|",
			} {
				n, err := db.QueryInt(t.Context(), "SELECT count(*) FROM "+table+" LIKE '%"+text+"%'")
				if err != nil || n > 0 {
					t.Errorf("%d rows of %s contain %q, %v", n, table, text, err)
				}
			}
			if n, err := db.QueryInt(t.Context(), "SELECT count(*) FROM "+table+" <> ''"); err != nil || n == 0 {
				t.Errorf("%s has %d rows, %v", table, n, err)
			}
		}
	})
}

// TestCountsInClear lets instances of an earlier version, which store values in clear, and of this one
// count the same values, before and after each other. Each count counts once, at any time.
func TestCountsInClear(t *testing.T) {
	ada := authstoretest.Account(0).ID
	o, additions := countedSignIn(t, "203.0.113.7", risk.Location{
		State: risk.Known, Country: "DE", Network: risk.Network{ASN: 64500},
	})
	clear := []history.Value{
		{Feature: history.Country, Text: "DE"}, {Feature: history.Provider, Text: "AS64500"},
		{Feature: history.Browser, Text: "Firefox|Linux"},
		{Feature: history.Timezone, Text: "Asia/Kolkata"}, // is as long as a hash
	}
	additions = append(additions, history.Addition{
		Value: clear[3], Person: true, Everyone: true, Weight: history.Growth(o.At()),
	})
	relationaltest.InEach(t, func(t *testing.T, db *relationaltest.Database) {
		stores := openStores(t, db)
		at := "'2031-03-01T00:00:00Z'"
		if db.Kind() == relationaltest.SQLite {
			at = "1930089600000000"
		}
		execute := func(statement string, values ...any) {
			t.Helper()
			must.Succeed(t, db.Execute(t.Context(), fmt.Sprintf(statement, values...)))
		}
		// An instance of the earlier version has 1000 times the weight of the sign-in, so that sums tell
		// which counts are in them.
		w := history.Growth(o.At())
		countOld := func() {
			for _, v := range clear {
				const row = "(%s%d, '%s', %f, %s, 14500, 2233) ON CONFLICT (%sfeature, value) DO UPDATE SET sum = c.sum + %[4]f"
				execute("INSERT INTO history_counts AS c (user_id, feature, value, sum, last_at, version, period) VALUES "+row,
					"'"+string(ada)+"', ", int(v.Feature), v.Text, 1000*w, at, "user_id, ")
				execute("INSERT INTO history_totals AS c (feature, value, sum, last_at, version, period) VALUES "+row,
					"", int(v.Feature), v.Text, 1000*w, at, "")
			}
		}
		want := func(when string, own, all float64) {
			t.Helper()
			if _, err := stores.History.Gather(t.Context()); err != nil {
				t.Fatal(err)
			}
			counts, err := stores.History.Read(t.Context(), ada, clear, clear)
			must.Succeed(t, err)
			for _, v := range clear {
				for which, c := range map[float64]history.Count{own: counts.Person[v], all: counts.Everyone[v]} {
					if math.Abs(c.Sum/w-which) > 1e-3 {
						t.Errorf("%s, %v is counted %v times, want %v", when, v, c.Sum/w, which)
					}
				}
			}
			if c := counts.Person[clear[2]]; c.Version != 14500 {
				t.Errorf("%s, the browser has the version %d", when, c.Version)
			}
		}
		add := func() {
			must.Succeed(t, stores.History.Add(t.Context(), ada, additions, o.At()))
		}
		for _, err := range []error{
			stores.Accounts.Create(t.Context(), authstoretest.Account(0)), createDevice(t, stores),
			stores.Sessions.Create(t.Context(), authstoretest.Living(0, 1)),
		} {
			must.Succeed(t, err)
		}
		countOld()
		want("before the first sign-in", 1000, 1000)
		add()
		want("after a sign-in", 1001, 1001)
		countOld() // on an instance that is not upgraded yet
		want("after one on the other version", 2001, 2001)
		add()
		want("after both", 2002, 2002)
		if n, err := db.QueryInt(t.Context(),
			"SELECT count(*) FROM history_counts WHERE value IN ('DE', 'AS64500', 'Firefox|Linux')"); n != 0 || err != nil {
			t.Errorf("%d counts of the person are in clear, %v", n, err)
		}
		const stored = `[{"f":14,"p":"DE","e":"DE","w":%f},{"f":13,"p":"AS64500","e":"AS64500","w":%[1]f},` +
			`{"f":21,"p":"Firefox|Linux","e":"Firefox|Linux","w":%[1]f},{"f":24,"p":"Asia/Kolkata","e":"Asia/Kolkata","w":%[1]f}]`
		execute("INSERT INTO history_deferred (session_id, at, additions) VALUES ('%s', %s, '%s')",
			authstoretest.Living(0, 1).ID, at, fmt.Sprintf(stored, 5*w))
		execute("INSERT INTO history_additions (at, additions) VALUES (%s, '%s')", at, fmt.Sprintf(stored, 7*w))
		must.Succeed(t, stores.History.Confirm(t.Context(), authstoretest.Living(0, 1).ID))
		want("after what the other version deferred", 2007, 2014)
	})
}

func createDevice(t *testing.T, s authstoretest.Stores) error {
	t.Helper()
	_, _, err := s.Devices.Ensure(t.Context(), authstoretest.Device(0, 0))
	return err
}

// TestAccountTakesCountsAlong deletes an account as an operator does with SQL, and looks for rows
// of the person.
func TestAccountTakesCountsAlong(t *testing.T) {
	relationaltest.InEach(t, func(t *testing.T, db *relationaltest.Database) {
		stores := openStores(t, db)
		for n := range 2 {
			must.Succeed(t, stores.Accounts.Create(t.Context(), authstoretest.Account(n)))
			o, additions := countedSignIn(t, "203.0.113.7", risk.Location{})
			must.Succeed(t, stores.History.Add(t.Context(), authstoretest.Account(n).ID, additions, o.At()))
		}
		all, err := db.QueryInt(t.Context(), "SELECT count(*) FROM history_counts")
		if err != nil || all == 0 {
			t.Fatal(all, err)
		}
		must.Succeed(t, db.Execute(t.Context(),
			"DELETE FROM accounts WHERE id = '"+string(authstoretest.Account(0).ID)+"'"))
		if left, err := db.QueryInt(t.Context(), "SELECT count(*) FROM history_counts"); err != nil ||
			left != all/2 {
			t.Errorf("%d of %d rows are left, %v, want half", left, all, err)
		}
	})
}

// BenchmarkReadCounts measures the query of a sign-in, in tables of 100,000 and 50,000 rows.
func BenchmarkReadCounts(b *testing.B) {
	o, additions := countedSignIn(b, "203.0.113.7", risk.Location{
		State: risk.Known, Country: "DE", Network: risk.Network{ASN: 64500},
	})
	relationaltest.MeasureInEach(b, func(b *testing.B, db *relationaltest.Database) {
		db.Fill(b, insertCounts(db.Kind())...)
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
				must.Succeed(b, store.Add(b.Context(), person(7), additions, o.At()))
			}
		})
	})
}
