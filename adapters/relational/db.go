// Package relational keeps the records of the service in a relational
// database: one set of Bun rows and queries for PostgreSQL and SQLite, and the
// migrations of both. It opens no database itself: the packages below it do,
// and tell it what differs in a Dialect. It decides nothing about the records;
// what must hold whatever a caller does is a constraint of the schema.
package relational

import (
	"context"

	"github.com/sirupsen/logrus"
	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// DB is a database that is open: what the stores of this package share. It
// answers transaction.Runner. It is safe for concurrent use.
type DB struct {
	reader  *bun.DB
	writer  *bun.DB
	dialect Dialect

	statements statements
	hook       bun.QueryHook // nil for none
	log        *logrus.Entry // nil for none
	writes     writes
}

// New returns a database over two pools: read for what needs no transaction,
// write for transactions. They may be the same one. The caller closes them.
func New(read, write *bun.DB, d Dialect) *DB {
	db := &DB{reader: read, dialect: d}
	db.writer = write.WithQueryHook(spoiler{db})
	return db
}

// Observe has a hook hear of every statement from now on. It is for the time
// before the database is used.
func (d *DB) Observe(hook bun.QueryHook) {
	d.hook = hook
	d.writer, d.reader = d.writer.WithQueryHook(hook), d.reader.WithQueryHook(hook)
}

// Log has the database write to a log when it is found away or cannot be written, and when that is
// over. It is for the time before the database is used.
func (d *DB) Log(log *logrus.Entry) {
	d.log = log
	if d.dialect.Breaker != nil {
		d.dialect.Breaker.log = log
	}
}

// inTransaction calls do with the transaction that ctx carries, or else with one of
// its own. do passes its context on to every statement.
func (d *DB) inTransaction(ctx context.Context, do func(ctx context.Context, tx bun.IDB) error) error {
	if t := d.carriedTransaction(ctx); t != nil {
		return do(ctx, t.tx)
	}
	return d.Atomically(ctx, func(ctx context.Context) error {
		return do(ctx, d.carriedTransaction(ctx).tx)
	})
}

// execStatement runs a statement and tells how many rows it changed. Its errors are
// classified.
func (d *DB) execStatement(ctx context.Context, db bun.IDB, statement string, args ...any) (changed int64, err error) {
	res, err := db.ExecContext(ctx, statement, args...)
	if err != nil {
		return 0, d.classifyError(err)
	}
	changed, err = res.RowsAffected()
	return changed, d.classifyError(err)
}

// scanInto reads what a query returns into one value, or into a slice. Its errors
// are classified.
func (d *DB) scanInto(ctx context.Context, db bun.IDB, into any, query string, args ...any) error {
	return d.classifyError(db.NewRaw(query, args...).Scan(ctx, into))
}

// readPage returns one page of the rows that a query selects, and how many it selects in all: they
// are counted only where the page does not show it.
func readPage[R any](
	ctx context.Context, d *DB, page auth.PageRequest, which func(*bun.SelectQuery) *bun.SelectQuery,
) (rows []R, total int, err error) {
	rows, err = reading(ctx, d, func(ctx context.Context, db bun.IDB) (rows []R, err error) {
		rows, total, err = selectPage[R](ctx, d, which(db.NewSelect()), page)
		return rows, err
	})
	return rows, total, err
}

func selectPage[R any](ctx context.Context, d *DB, q *bun.SelectQuery, page auth.PageRequest) (rows []R, total int, err error) {
	q.Model(&rows)
	if page.Limit > 0 {
		if err := q.Limit(page.Limit).Offset(page.Offset).Scan(ctx); err != nil {
			return nil, 0, d.classifyError(err)
		}
		if len(rows) < page.Limit && (len(rows) > 0 || page.Offset == 0) {
			return rows, page.Offset + len(rows), nil
		}
	}
	total, err = q.Count(ctx)
	return rows, total, d.classifyError(err)
}

// mustChange returns fault.NotFound when exec changed no row.
func mustChange(changed int64, err error) error {
	if err == nil && changed == 0 {
		return fault.New(fault.NotFound, "", "no such record")
	}
	return err
}
