package authrecords_test

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/relational/relationaltest"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/test/must"
)

// insertPeople returns the statements that add people.
func insertPeople(kind string, people int) []string {
	count := strconv.Itoa(people)
	numbers, id := "generate_series(1, "+count+") AS n (i)", "('00000000-1234-4abc-8def-' || lpad(n.i::text, 12, '0'))::uuid"
	empty := "''::bytea"
	if kind == relationaltest.SQLite {
		numbers = "(WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < " + count + ") SELECT i FROM n) AS n"
		id, empty = "printf('00000000-1234-4abc-8def-%012d', n.i)", "x''"
	}
	all := []string{`INSERT INTO accounts (id, email, name, phone, password_hash, state, mfa_secret, mfa_active, mfa_last_step)
		SELECT ` + id + ", 'p' || n.i || '@example.com', 'Person ' || n.i, '', '', 'active', " + empty + ", false, 0 FROM " + numbers}
	if kind == relationaltest.PostgreSQL {
		all = append(all, "VACUUM ANALYZE")
	}
	return all
}

// TestDirectoryUsesIndexes checks the plans of a page of people, and of a search by a part that few
// of them have.
func TestDirectoryUsesIndexes(t *testing.T) {
	whole := map[string]*regexp.Regexp{
		relationaltest.PostgreSQL: regexp.MustCompile(`Seq Scan on accounts`),
		relationaltest.SQLite:     regexp.MustCompile(`SCAN accounts|AUTOMATIC|SCAN account_parts$`),
	}
	relationaltest.InEach(t, func(t *testing.T, db *relationaltest.Database) {
		db.Fill(t, insertPeople(db.Kind(), relationaltest.Rows(db.Kind(), 20_000))...)
		people := newStores(t, db.DB).Directory
		few := map[string]string{relationaltest.SQLite: "39", relationaltest.PostgreSQL: "1999"}[db.Kind()] // and ten that begin so
		for part, want := range map[string]int{"": 51, "p" + few + "@": 1, "SON " + few: 11, "example": 51, "zzzz": 0} {
			var found []authstore.Person
			plans, err := db.Plans(t.Context(), func(ctx context.Context) (err error) {
				found, err = people.Search(ctx, authstore.DirectoryQuery{Part: part, Limit: 51})
				return err
			})
			if err != nil || len(found) != want || len(plans) == 0 {
				t.Fatalf("%q: %d people, %d plans, %v; want %d", part, len(found), len(plans), err, want)
			}
			for query, plan := range plans {
				// A page of what everybody has is full after some people, in their order.
				if part != "example" && part != "" && whole[db.Kind()].MatchString(plan) {
					t.Errorf("%q reads all people:\n%.300s\n%s", part, query, plan)
				}
			}
		}
	})
}

// TestDirectoryReadsSomePeople checks that a page of those with a part that everybody has reads some
// of them: also if nobody has it in the first window, and with two letters, which the index does not
// have. The planner of SQLite follows the order of the query; that of PostgreSQL has to be made to.
func TestDirectoryReadsSomePeople(t *testing.T) {
	people := 100_000
	if testing.Short() {
		people = 20_000
	}
	relationaltest.InEach(t, func(t *testing.T, db *relationaltest.Database) {
		if db.Kind() == relationaltest.SQLite {
			t.Skip("see above")
		}
		db.Fill(t, append(insertPeople(db.Kind(), people), "UPDATE accounts SET name = 'X' WHERE email < 'p13'")...)
		directory := newStores(t, db.DB).Directory
		for part, begin := range map[string]string{"Person": "p13000", "er": "p13000", "exam": "p1000"} {
			plans, err := db.Executions(t.Context(), false, func(ctx context.Context) error {
				found, err := directory.Search(ctx, authstore.DirectoryQuery{Part: part, Limit: 51})
				if err == nil && (len(found) != 51 || !strings.HasPrefix(string(found[0].Email), begin)) {
					t.Errorf("%q: %d people, the first is %v", part, len(found), found[0].Email)
				}
				return err
			})
			must.Succeed(t, err)
			for query, plan := range plans {
				if rows := relationaltest.MostRows(plan); rows > 5_000 {
					t.Errorf("%q: a step reads %d rows\n%.400s\n%s", part, rows, query, plan)
				}
			}
		}
	})
}
