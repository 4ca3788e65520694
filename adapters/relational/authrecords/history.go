package authrecords

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/history"
)

// historyStore stores the counts of the history score. It implements [authstore.HistoryCounts],
// [authstore.HistoryDeferrals] and [authstore.HistoryTotals].
//
// A sign-in changes the rows of its person in history_counts. What it adds for everybody becomes
// one new row of history_additions, and Gather adds these rows to history_totals. So sign-ins do
// not wait for each other, and a row that is committed is counted once, also if an instance is
// killed.
type historyStore struct {
	db  *database.DB
	key auth.Key
}

// countPeriod is the unit of the column period. Retention finds old rows by the period, and then
// compares the time.
const countPeriod = 10 * day

func periodOf(t time.Time) int64 { return dayNumber(t) / int64(countPeriod/day) }

// countRow is a row of history_totals, and of history_counts together with the person.
type countRow struct {
	Feature history.Feature  `bun:"feature"`
	Value   string           `bun:"value"`
	Sum     float64          `bun:"sum"`
	LastAt  database.Instant `bun:"last_at"`
	Version uint32           `bun:"version"`
}

// compareValues orders rows by their values. All writers of a table write its rows in this order,
// so that no two of them wait for each other.
func compareValues(a, b countRow) int {
	return cmp.Or(cmp.Compare(a.Feature, b.Feature), cmp.Compare(a.Value, b.Value))
}

// rowsPerStatement is the number of rows that one statement adds to.
const rowsPerStatement = 500

// addRows adds rows with different values to the counts of a person, or of everybody if user is
// empty.
func (h *historyStore) addRows(ctx context.Context, tx bun.IDB, user auth.UserID, rows []countRow) error {
	slices.SortFunc(rows, compareValues)
	for part := range slices.Chunk(rows, rowsPerStatement) {
		target, conflict := "history_totals AS c (", "feature, value"
		if user != "" {
			target, conflict = "history_counts AS c (user_id, ", "user_id, feature, value"
		}
		values := make([][]any, 0, len(part))
		for i := range part {
			r := &part[i]
			row := []any{int(r.Feature), r.Value, r.Sum, r.LastAt, r.Version, periodOf(r.LastAt.Time)}
			if user != "" {
				row = slices.Insert(row, 0, any(user))
			}
			values = append(values, row)
		}
		_, err := h.db.ExecStatement(ctx, tx,
			"INSERT INTO "+target+`feature, value, sum, last_at, version, period) VALUES `+tuples(len(values),
				len(values[0]))+`
			ON CONFLICT (`+conflict+`) DO UPDATE SET sum = c.sum + excluded.sum,
				version = CASE WHEN excluded.last_at > c.last_at OR excluded.last_at = c.last_at AND excluded.version > c.version
					THEN excluded.version ELSE c.version END,
				last_at = CASE WHEN excluded.last_at > c.last_at THEN excluded.last_at ELSE c.last_at END,
				period = CASE WHEN excluded.period > c.period THEN excluded.period ELSE c.period END`,
			slices.Concat(values...)...)
		if err != nil {
			return err
		}
	}
	return nil
}

// tuples returns the placeholders of a number of tuples.
func tuples(number, width int) string {
	tuple := "(?" + strings.Repeat(", ?", width-1) + ")"
	return tuple + strings.Repeat(", "+tuple, number-1)
}

func (h *historyStore) Read(
	ctx context.Context, user auth.UserID, person, everyone []history.Value,
) (history.Counts, error) {
	counts := history.Counts{Person: make(history.Table, len(person)), Everyone: make(history.Table, len(everyone))}
	if len(person)+len(everyone) == 0 {
		return counts, ctx.Err()
	}
	q := h.newReadQuery(user, person, everyone)
	rows, err := database.Read(ctx, h.db, func(ctx context.Context, db bun.IDB) (rows []readRow, err error) {
		return rows, h.db.ScanInto(ctx, db, &rows, q.Text, q.Args...)
	})
	if err != nil {
		return history.Counts{}, err
	}
	for i := range rows {
		if n := rows[i].Place; n < len(person) {
			rows[i].addTo(counts.Person, person[n])
		} else {
			rows[i].addTo(counts.Everyone, everyone[n-len(person)])
		}
	}
	return counts, nil
}

// readRow is a count of a value that was requested, with its place in the list of the requested
// values: first those of the person, then those of everybody.
type readRow struct {
	Place   int              `bun:"place"`
	Sum     float64          `bun:"sum"`
	LastAt  database.Instant `bun:"last_at"`
	Version uint32           `bun:"version"`
}

// addTo adds the count to that of a value, of which a hash and a text of an earlier version may be
// stored.
func (r *readRow) addTo(t history.Table, v history.Value) {
	t[v] = t[v].Plus(history.Addition{Weight: r.Sum, Version: r.Version}, r.LastAt.Time)
}

// newReadQuery returns the query of Read. It joins the requested values with the tables, so that
// the database looks each value up by the primary key.
func (h *historyStore) newReadQuery(user auth.UserID, person, everyone []history.Value) database.Query {
	var tables, selects []string
	var args []any
	request := func(name string, place int, user auth.UserID, list []history.Value) {
		before := len(args)
		for i, v := range list {
			args = append(args, place+i, int(v.Feature), v.Stored(h.key, user))
			if text, other := v.Clear(); other {
				args = append(args, place+i, int(v.Feature), text)
			}
		}
		tables = append(tables, name+" (place, feature, value) AS (VALUES "+tuples((len(args)-before)/3, 3)+")")
	}
	if len(person) > 0 {
		request("own", 0, user, person)
		selects = append(selects, "SELECT place, sum, last_at, version FROM own AS v CROSS JOIN history_counts AS c "+
			"WHERE c.user_id = ? AND c.feature = v.feature AND c.value = v.value")
	}
	if len(everyone) > 0 {
		request("shared", len(person), "", everyone)
		selects = append(selects,
			"SELECT place, sum, last_at, version FROM shared AS v CROSS JOIN history_totals AS c "+
				"WHERE c.feature = v.feature AND c.value = v.value")
	}
	if len(person) > 0 {
		args = append(args, user)
	}
	return database.Query{
		Text: "WITH " + strings.Join(tables, ", ") + " " + strings.Join(selects, " UNION ALL "), Args: args,
	}
}
