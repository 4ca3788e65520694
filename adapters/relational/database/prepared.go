package database

import (
	"context"
	"database/sql"

	"github.com/uptrace/bun"
)

// Query is a query with its arguments.
type Query struct {
	Text string
	Args []any
	// Fixed is true if the text is one of a few, and one plan is good for all arguments. Then the
	// query is prepared.
	Fixed bool
}

// Collect runs a query in the transaction that ctx carries, or with the read pool, and returns the
// result of collect for its rows. It calls collect again for the rows of another try. Errors of the
// database are classified.
func Collect[T any](ctx context.Context, d *DB, q Query, collect func(*sql.Rows) (T, error)) (T, error) {
	return Read(ctx, d, func(ctx context.Context, _ bun.IDB) (found T, err error) {
		rows, err := d.queryRows(ctx, q)
		if err != nil {
			return found, d.ClassifyError(err)
		}
		defer func() { _ = rows.Close() }() // rows.Err returns the error
		if found, err = collect(rows); err != nil {
			return found, d.ClassifyError(err)
		}
		return found, d.ClassifyError(rows.Err())
	})
}

// queryRows runs a query in the transaction that ctx carries, or with the read pool.
func (d *DB) queryRows(ctx context.Context, q Query) (*sql.Rows, error) {
	switch t := d.carriedTransaction(ctx); {
	case t != nil:
		return t.tx.QueryContext(ctx, q.Text, q.Args...)
	case q.Fixed:
		return d.queryObserved(ctx, q)
	default:
		return d.reader.QueryContext(ctx, q.Text, q.Args...)
	}
}

// CollectAll is Collect with the results of scan, which scans one row, for all rows.
func CollectAll[T any](ctx context.Context, d *DB, q Query, scan func(row *sql.Rows) (T, error)) ([]T, error) {
	return Collect(ctx, d, q, func(rows *sql.Rows) (all []T, err error) {
		for rows.Next() {
			one, err := scan(rows)
			if err != nil {
				return nil, err
			}
			all = append(all, one)
		}
		return all, nil
	})
}

// ScanText scans a row of one text, for CollectAll.
func ScanText[T ~string](row *sql.Rows) (text T, err error) {
	err = row.Scan(&text)
	return text, err
}

// ScanRow scans the columns of the first row of a query. If there is no row, it changes nothing.
// Its errors are classified.
func (d *DB) ScanRow(ctx context.Context, q Query, into ...any) error {
	_, err := Collect(ctx, d, q, func(rows *sql.Rows) (struct{}, error) {
		if rows.Next() {
			return struct{}{}, rows.Scan(into...)
		}
		return struct{}{}, nil
	})
	return err
}

// queryObserved runs a prepared query and calls the hook, because Bun does not see the query.
func (d *DB) queryObserved(ctx context.Context, q Query) (rows *sql.Rows, err error) {
	if d.hook != nil {
		event := &bun.QueryEvent{DB: d.reader, Query: q.Text, QueryTemplate: q.Text, QueryArgs: q.Args}
		ctx = d.hook.BeforeQuery(ctx, event)
		defer func() { event.Err = err; d.hook.AfterQuery(ctx, event) }()
	}
	statement, err := d.prepareOnce(ctx, q.Text) //nolint:sqlclosecheck // the next query uses it
	if err != nil {
		return nil, err
	}
	return statement.QueryContext(ctx, q.Args...) //nolint:sqlclosecheck // the caller closes the rows
}

// prepareOnce returns the statement of the read pool with a text. The pool closes it.
func (d *DB) prepareOnce(ctx context.Context, text string) (*sql.Stmt, error) {
	if known, ok := d.statements.Load(text); ok {
		return known.(*sql.Stmt), nil //nolint:errcheck // it has only statements
	}
	made, err := d.reader.DB.PrepareContext(ctx, d.dialect.Syntax.Placeholders(text))
	if err != nil {
		return nil, err
	}
	known, loaded := d.statements.LoadOrStore(text, made)
	if loaded {
		_ = made.Close() //nolint:sqlclosecheck // another caller was first; this statement was never used
	}
	return known.(*sql.Stmt), nil //nolint:errcheck // it has only statements
}
