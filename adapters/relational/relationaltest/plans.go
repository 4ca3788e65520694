package relationaltest

import (
	"context"
	"database/sql"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/schema"
)

// Rows returns how many rows a test of plans needs: so many on PostgreSQL, whose plans follow from its statistics, and
// a fiftieth on SQLite, which has none, plans by the schema alone, and takes long to insert rows.
func Rows(kind string, postgres int) int {
	if kind == SQLite {
		return postgres / 50
	}
	return postgres
}

// planRecorder is a query hook that keeps the queries of Plans and Executions.
type planRecorder struct{}

// recorded is the key of the recorded queries in a context.
type recorded struct{}

func (planRecorder) BeforeQuery(ctx context.Context, _ *bun.QueryEvent) context.Context { return ctx }

func (planRecorder) AfterQuery(ctx context.Context, e *bun.QueryEvent) {
	if all, ok := ctx.Value(recorded{}).(*[]*bun.QueryEvent); ok {
		*all = append(*all, e)
	}
}

// recordQueries returns the queries of a call. It makes the call in a transaction, so that Bun sees
// all of them.
func (d *Database) recordQueries(ctx context.Context, call func(ctx context.Context) error) ([]*bun.QueryEvent, error) {
	var all []*bun.QueryEvent
	err := d.Atomically(context.WithValue(ctx, recorded{}, &all), call)
	return slices.DeleteFunc(all, func(e *bun.QueryEvent) bool {
		return !strings.Contains(e.Query, "SELECT") && !strings.HasPrefix(e.Query, "DELETE")
	}), err
}

// Plans makes a call and returns the plan of each of its queries and deletions, by their texts. The
// database must come from Databases.
func (d *Database) Plans(ctx context.Context, call func(ctx context.Context) error) (map[string]string, error) {
	queries, err := d.recordQueries(ctx, call)
	explain := map[string]string{SQLite: "EXPLAIN QUERY PLAN ", PostgreSQL: "EXPLAIN "}[d.kind]
	plans := make(map[string]string, len(queries))
	for _, e := range queries {
		if err == nil {
			plans[e.Query], err = readPlan(d.admin.QueryContext(ctx, explain+e.Query))
		}
	}
	return plans, err
}

// Executions makes a call on PostgreSQL, runs its queries again, and returns their plans with the
// number of rows that each step read, by their texts. The plans are made for the arguments, or, if
// generic is true, for any arguments. The database must come from Databases.
func (d *Database) Executions(
	ctx context.Context, generic bool, call func(ctx context.Context) error,
) (map[string]string, error) {
	queries, err := d.recordQueries(ctx, call)
	plans := make(map[string]string, len(queries))
	for _, e := range queries {
		if err == nil {
			plans[e.Query], err = d.explainExecution(ctx, generic, e)
		}
	}
	return plans, err
}

func (d *Database) explainExecution(ctx context.Context, generic bool, e *bun.QueryEvent) (string, error) {
	conn, err := d.admin.Conn(ctx)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }() // its statements have ended
	const explain = "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) "
	if len(e.QueryArgs) == 0 {
		return readPlan(conn.QueryContext(ctx, explain+e.Query))
	}
	mode := "force_custom_plan"
	if generic {
		mode = "force_generic_plan"
	}
	prepare := "PREPARE execution AS " + e.QueryTemplate
	for n := range len(e.QueryArgs) {
		prepare = strings.Replace(prepare, "?", "$"+strconv.Itoa(n+1), 1)
	}
	for _, statement := range []string{"SET plan_cache_mode = " + mode, prepare} {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return "", err
		}
	}
	// for the next execution
	defer func() { _, _ = conn.ExecContext(ctx, "DEALLOCATE execution; RESET plan_cache_mode") }()
	values := schema.NewQueryGen(pgdialect.New()).FormatQuery(strings.Repeat(", ?", len(e.QueryArgs)), e.QueryArgs...)
	return readPlan(conn.QueryContext(ctx,
		explain+"EXECUTE execution ("+strings.TrimPrefix(values, ", ")+")"))
}

var (
	// stepRows matches how many rows a step of a plan of PostgreSQL returns, and how often it runs.
	stepRows = regexp.MustCompile(`actual rows=(\d+)(?:\.\d+)? loops=(\d+)`)
	// removedRows matches how many rows a step reads in vain.
	removedRows = regexp.MustCompile(`Rows Removed by [^:]*: (\d+)`)
)

// MostRows returns how many rows the largest step of a plan of Executions reads.
func MostRows(plan string) (most int) {
	number := func(text string) int {
		n, _ := strconv.Atoi(text) // digits
		return n
	}
	for _, found := range stepRows.FindAllStringSubmatch(plan, -1) {
		most = max(most, number(found[1])*number(found[2]))
	}
	for _, found := range removedRows.FindAllStringSubmatch(plan, -1) {
		most = max(most, number(found[1]))
	}
	return most
}

// readPlan returns the lines of a plan.
func readPlan(rows *sql.Rows, err error) (string, error) {
	if err != nil {
		return "", err
	}
	defer func() { _ = rows.Close() }() // rows.Err returns its error
	columns, err := rows.Columns()
	if err != nil {
		return "", err
	}
	var lines []string
	for rows.Next() {
		into := make([]any, len(columns))
		for i := range into {
			into[i] = new(sql.RawBytes)
		}
		var line string
		into[len(into)-1] = &line // the text is in the last column
		if err := rows.Scan(into...); err != nil {
			return "", err
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n"), rows.Err()
}
