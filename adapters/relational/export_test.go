package relational

import (
	"context"
	"database/sql"
	"strings"

	"github.com/uptrace/bun"
)

// FarRows is how many rows a page looks at, at most.
const FarRows = farRows

// AskIndexes has small registries searched as large ones are.
func (s *Servers) AskIndexes() { s.near = 0 }

// MigrateTo applies the first n migrations, for tests of databases that an
// older program left.
func (d *DB) MigrateTo(ctx context.Context, n int) ([]string, error) { return d.migrateTo(ctx, n) }

// Execute runs a statement, for tests of databases that someone else changed.
func (d *DB) Execute(ctx context.Context, statement string) error {
	_, err := d.writer.ExecContext(ctx, statement)
	return err
}

// Run runs a statement in the transaction that ctx carries.
func (d *DB) Run(ctx context.Context, statement string) error {
	_, err := d.carriedTransaction(ctx).tx.ExecContext(ctx, statement)
	return err
}

// Number returns what a query of one number finds.
func (d *DB) Number(ctx context.Context, query string) (n int, err error) {
	err = d.scanInto(ctx, d.reader, &n, query)
	return n, err
}

// Plans runs reads in a transaction and returns the database's plan of each of
// their queries.
func (d *DB) Plans(ctx context.Context, reads func(ctx context.Context) error) (map[string]string, error) {
	seen := &queries{}
	watched := &DB{reader: d.reader, writer: d.writer.WithQueryHook(seen), dialect: d.dialect}
	err := watched.Atomically(ctx, func(ctx context.Context) error {
		return reads(context.WithValue(ctx, carrier{d}, watched.carriedTransaction(ctx)))
	})
	plans := make(map[string]string, len(seen.texts))
	for _, text := range seen.texts {
		if err == nil && (strings.Contains(text, "SELECT") || strings.HasPrefix(text, "DELETE")) {
			plans[text], err = d.plan(ctx, text)
		}
	}
	return plans, err
}

func (d *DB) plan(ctx context.Context, text string) (string, error) {
	explain := "EXPLAIN "
	if d.dialect.Name == SQLite {
		explain = "EXPLAIN QUERY PLAN "
	}
	return planOf(d.writer.DB.QueryContext(ctx, explain+text))
}

// Executions runs reads in a transaction and returns, by their texts, the plans of PostgreSQL for each of their queries with what was
// read by each step: one that is made for the values, or one that is good for any values.
func (d *DB) Executions(ctx context.Context, generic bool, reads func(ctx context.Context) error) (map[string]string, error) {
	seen := &queries{}
	watched := &DB{reader: d.reader, writer: d.writer.WithQueryHook(seen), dialect: d.dialect}
	err := watched.Atomically(ctx, func(ctx context.Context) error {
		return reads(context.WithValue(ctx, carrier{d}, watched.carriedTransaction(ctx)))
	})
	plans := make(map[string]string, len(seen.events))
	for _, e := range seen.events {
		if err == nil && strings.Contains(e.Query, "SELECT") {
			plans[e.Query], err = d.execution(ctx, generic, e)
		}
	}
	return plans, err
}

func (d *DB) execution(ctx context.Context, generic bool, e *bun.QueryEvent) (string, error) {
	conn, err := d.writer.DB.Conn(ctx)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }() // what it is told ends with this function
	mode := "force_custom_plan"
	if generic {
		mode = "force_generic_plan"
	}
	for _, statement := range []string{"SET plan_cache_mode = " + mode, "PREPARE execution AS " + d.dialect.placeholders(e.QueryTemplate)} {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return "", err
		}
	}
	defer func() { _, _ = conn.ExecContext(ctx, "DEALLOCATE execution; RESET plan_cache_mode") }() // the next one would fail
	values := d.writer.QueryGen().FormatQuery(strings.Repeat(", ?", len(e.QueryArgs)), e.QueryArgs...)
	return planOf(conn.QueryContext(ctx, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) EXECUTE execution ("+strings.TrimPrefix(values, ", ")+")"))
}

func planOf(rows *sql.Rows, err error) (string, error) {
	if err != nil {
		return "", err
	}
	defer func() { _ = rows.Close() }() // rows.Err has told
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
		into[len(into)-1] = &line // the plan's words come last
		if err := rows.Scan(into...); err != nil {
			return "", err
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n"), rows.Err()
}

// queries keeps the queries that Bun runs.
type queries struct {
	texts  []string
	events []*bun.QueryEvent
}

func (*queries) BeforeQuery(ctx context.Context, _ *bun.QueryEvent) context.Context { return ctx }

func (q *queries) AfterQuery(_ context.Context, e *bun.QueryEvent) {
	q.texts, q.events = append(q.texts, e.Query), append(q.events, e)
}
