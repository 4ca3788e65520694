// Package database runs the queries and transactions of the stores of records on a relational
// database: it retries them, limits their time, classifies their errors, and applies migrations. It
// does not open databases, and it has no table of its own except the table migrations: the packages
// postgres and sqlite open a database and provide its Dialect, and the packages authrecords,
// registryrecords and methodrecords are the stores.
package database

import (
	"context"
	"database/sql"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/sirupsen/logrus"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// DB is an open database, which the stores share. It implements transaction.Runner. It is safe for
// concurrent use.
type DB struct {
	reader  *bun.DB
	writer  *bun.DB
	dialect Dialect

	statements sync.Map      // the prepared statements of the read pool (*sql.Stmt), by their text
	hook       bun.QueryHook // optional
	log        *logrus.Entry // optional
	writes     writes
	changes    atomic.Uint64 // that NoteChange has noted
}

// New returns a database with two pools: read for queries outside of transactions, write for
// transactions. They may be the same pool. The caller closes them.
func New(read, write *bun.DB, d Dialect) *DB {
	db := &DB{reader: read, dialect: d}
	db.writer = write.WithQueryHook(failureHook{db})
	return db
}

// Observe calls a hook for every statement from now on. It must be called before the database is
// used.
func (d *DB) Observe(hook bun.QueryHook) {
	d.hook = hook
	d.writer, d.reader = d.writer.WithQueryHook(hook), d.reader.WithQueryHook(hook)
}

// Log makes the database write to a log when it is away or cannot be written, and when that is
// over. It must be called before the database is used.
func (d *DB) Log(log *logrus.Entry) {
	d.log = log
	if d.dialect.Breaker != nil {
		d.dialect.Breaker.log = log
	}
}

// Kind returns which database it is.
func (d *DB) Kind() dialect.Name { return d.reader.Dialect().Name() }

// TimeArgument converts a time to an argument of a query that Bun does not format.
func (d *DB) TimeArgument(t time.Time) any { return d.dialect.Syntax.TimeArgument(t) }

// HasDataVersion reports whether the database has a data version.
func (d *DB) HasDataVersion() bool { return d.dialect.DataVersion != nil }

// DataVersion returns a number that is another one after each commit. ok is false if the database
// lacks it.
func (d *DB) DataVersion(ctx context.Context) (version int64, ok bool, err error) {
	if d.dialect.DataVersion == nil {
		return 0, false, nil
	}
	version, err = d.dialect.DataVersion(ctx)
	return version, true, d.ClassifyError(err)
}

// Listen calls notify for each notification of a channel, and when notifications may have been
// lost, until ctx ends. It returns at once if the database sends no notifications.
func (d *DB) Listen(ctx context.Context, channel string, notify func(text string)) {
	if d.dialect.Listen != nil {
		d.dialect.Listen(ctx, channel, notify)
	}
}

// InTransaction calls do with the transaction that ctx carries, or with a new one. do must pass its
// context on to every statement.
func (d *DB) InTransaction(ctx context.Context, do func(ctx context.Context, tx bun.IDB) error) error {
	if t := d.carriedTransaction(ctx); t != nil {
		return do(ctx, t.tx)
	}
	return d.Atomically(ctx, func(ctx context.Context) error {
		return do(ctx, d.carriedTransaction(ctx).tx)
	})
}

// ExecStatement runs a statement and returns how many rows it changed. Its errors are classified.
func (d *DB) ExecStatement(ctx context.Context, db bun.IDB, statement string, args ...any) (changed int64, err error) {
	res, err := db.ExecContext(ctx, statement, args...)
	if err != nil {
		return 0, d.ClassifyError(err)
	}
	changed, err = res.RowsAffected()
	return changed, d.ClassifyError(err)
}

// Exec runs a statement in the transaction that ctx carries, or in one of its own, and returns how
// many rows it changed. Its errors are classified.
func (d *DB) Exec(ctx context.Context, statement string, args ...any) (changed int64, err error) {
	err = d.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) (err error) {
		changed, err = d.ExecStatement(ctx, tx, statement, args...)
		return err
	})
	return changed, err
}

// ScanInto reads the result of a query into one value, or into a slice. Its errors are classified.
func (d *DB) ScanInto(ctx context.Context, db bun.IDB, into any, query string, args ...any) error {
	return d.ClassifyError(db.NewRaw(query, args...).Scan(ctx, into))
}

// AffectedRows returns how many rows a statement changed. It classifies the error of the statement.
func (d *DB) AffectedRows(res sql.Result, err error) (int, error) {
	if err != nil {
		return 0, d.ClassifyError(err)
	}
	n, err := res.RowsAffected()
	return int(n), d.ClassifyError(err)
}

// MustChange returns fault.NotFound if a statement changed no row.
func MustChange(changed int64, err error) error {
	if err == nil && changed == 0 {
		return fault.New(fault.NotFound, "no such record")
	}
	return err
}

// LockForChange makes a query lock its rows against changes by others until the transaction ends.
// Unlike FOR UPDATE, the lock does not stop others from adding rows that refer to these rows.
// Otherwise a transaction that adds a session and then changes the account would wait for another
// one that does the same, and that one would wait for the first.
func (d *DB) LockForChange(q *bun.SelectQuery) *bun.SelectQuery {
	if lock := d.dialect.Syntax.RowLock; lock != "" {
		return q.For(lock)
	}
	return q
}

// BatchSize is how many rows one transaction of InBatches removes at most: a long backlog must
// neither reach the time limit of the statement nor keep other writers waiting.
const BatchSize = 5000

// InBatches calls remove until it removes fewer than BatchSize rows. Each call has its own
// transaction, unless ctx carries one. It returns how many rows were removed in all, also with an
// error.
func (d *DB) InBatches(
	ctx context.Context, remove func(ctx context.Context, tx bun.IDB) (int, error),
) (total int, err error) {
	for {
		var n int
		err := d.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) (err error) {
			n, err = remove(ctx, tx)
			return err
		})
		if err != nil {
			return total, err
		}
		total += n
		if n < BatchSize {
			return total, nil
		}
	}
}

// Instance is a process of the service that is connected to the database.
type Instance struct {
	Version, Process, Host string
	Since                  time.Time // of its connection
}

// Instances returns the processes of the service that listen for changes, those that have been
// connected longest first, and at most 100; empty if the database does not know them.
func (d *DB) Instances(ctx context.Context) ([]Instance, error) {
	if d.dialect.Instances == "" {
		return nil, ctx.Err()
	}
	return CollectAll(ctx, d, Query{Text: d.dialect.Instances, Fixed: true}, func(row *sql.Rows) (i Instance, err error) {
		var name string
		var since Instant
		err = row.Scan(&name, &since)
		rest := ""
		i.Version, rest, _ = strings.Cut(name, " ")
		i.Process, i.Host, _ = strings.Cut(rest, " ")
		i.Since = since.Time
		return i, err
	})
}

// Measure adds metrics of the state of the database and of its pools of connections: "records", and
// "records_write" if transactions have their own pool.
func (d *DB) Measure(r prometheus.Registerer) {
	r.MustRegister(
		collectors.NewDBStatsCollector(d.reader.DB, "records"),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "tollgate_database_available",
			Help: "1 while the database answers; 0 while it is away and calls fail at once.",
		}, func() float64 { return boolMetric(!d.dialect.Breaker.Refuses()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "tollgate_database_writable",
			Help: "1 while the database accepts writes; 0 after one failed because of missing space or permission.",
		}, func() float64 { return boolMetric(!d.writes.failing.Load()) }),
	)
	if d.writer.DB != d.reader.DB {
		r.MustRegister(collectors.NewDBStatsCollector(d.writer.DB, "records_write"))
	}
}

// boolMetric returns 1 for true and 0 for false.
func boolMetric(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
