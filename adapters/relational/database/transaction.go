package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/internal/pause"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

const (
	maxRuns   = 6                      // of one transaction that the database requests to run again
	briefWait = 100 * time.Millisecond // limit of the wait for a change that the caller does not need
	firstWait = 4 * time.Millisecond   // before the second run; doubled for each next one
)

var _ transaction.Runner = (*DB)(nil)

// running is the transaction that a context carries.
type running struct {
	tx bun.Tx
	// failure is the first error in the transaction, after which nothing of it may be stored.
	// PostgreSQL answers the COMMIT after a failed statement with a rollback and no error, and a
	// joined Atomically that returned an error promises that nothing is stored.
	failure error
	// ended are called after the commit.
	ended []func()
	// reading is true for a snapshot (DB.Snapshot), in which nothing can be changed.
	reading bool
}

// carrier is the key of the transaction of one database in a context. Two databases of a process
// have different keys.
type carrier struct{ db *DB }

func (d *DB) carriedTransaction(ctx context.Context) *running {
	t, _ := ctx.Value(carrier{d}).(*running)
	return t
}

// Transaction returns the transaction that ctx carries, and whether it carries one. A snapshot is
// not one.
func (d *DB) Transaction(ctx context.Context) (tx bun.Tx, ok bool) {
	if t := d.carriedTransaction(ctx); t != nil && !t.reading {
		return t.tx, true
	}
	return bun.Tx{}, false
}

// Atomically implements transaction.Runner, with the time limit of one call of the database. It
// runs do again, at most five times, if the database rolled the transaction back in favour of
// another one, and if the connection broke before the commit was sent. After a failed statement, or
// a joined call that returned an error, nothing is stored, even if do returns nil.
func (d *DB) Atomically(ctx context.Context, do func(ctx context.Context) error) error {
	if t := d.carriedTransaction(ctx); t != nil {
		err := do(ctx)
		if err != nil && t.failure == nil {
			t.failure = err
		}
		return err
	}
	return d.boundedCall(ctx, func(ctx context.Context) error {
		delay := firstWait
		for run := 1; ; run++ {
			err := d.retryLost(ctx, func() (uncommitted bool, err error) { return d.runOnce(ctx, do) })
			if run == maxRuns || !d.is(err, Retrying) {
				d.noteWrite(err)
				return err
			}
			if !pause.For(ctx, delay/2+rand.N(delay)) {
				return ctx.Err()
			}
			delay *= 2
		}
	})
}

// runOnce runs do in one transaction. If it returns an error, uncommitted is true if the commit was
// not sent. If do panics, it rolls the transaction back.
func (d *DB) runOnce(ctx context.Context, do func(ctx context.Context) error) (uncommitted bool, err error) {
	tx, release, err := d.beginTransaction(ctx)
	if err != nil {
		return true, d.classifyEnd(ctx, err)
	}
	defer release()
	open := true
	defer func() {
		if open {
			_ = tx.Rollback() // the caller gets the first error, and the database ends the transaction in any case
		}
	}()
	t := &running{tx: tx}
	if err := do(context.WithValue(ctx, carrier{d}, t)); err != nil {
		return true, err
	}
	if t.failure != nil {
		return true, d.classifyEnd(ctx, t.failure)
	}
	open = false
	err = tx.Commit()
	for _, call := range t.ended {
		call()
	}
	return false, d.classifyEnd(ctx, err)
}

// Snapshot calls do with a context that carries a transaction of the read pool, which changes
// nothing and whose statements all see one state of the database. It has the time limit of one
// call, unless the context is marked by transaction.Long. It calls do again if its connection breaks. If ctx carries a transaction, do joins it.
func (d *DB) Snapshot(ctx context.Context, do func(ctx context.Context) error) error {
	if d.carriedTransaction(ctx) != nil {
		return do(ctx)
	}
	return d.boundedCall(ctx, func(ctx context.Context) error {
		return d.retryLost(ctx, func() (again bool, err error) { return true, d.readOnce(ctx, do) })
	})
}

// readOnce calls do in one snapshot.
func (d *DB) readOnce(ctx context.Context, do func(ctx context.Context) error) error {
	tx, err := d.reader.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return d.classifyEnd(ctx, err)
	}
	defer func() { _ = tx.Rollback() }() // nothing was changed
	if transaction.IsLong(ctx) && d.dialect.LongBegin != "" {
		if _, err := tx.ExecContext(ctx, d.dialect.LongBegin); err != nil {
			return d.classifyEnd(ctx, err)
		}
	}
	return do(context.WithValue(ctx, carrier{d}, &running{tx: tx, reading: true}))
}

// AfterCommit calls do after the commit of the transaction that ctx carries, before Atomically
// returns, also if the outcome of the commit is unknown. It does not call do if the transaction is
// rolled back.
func (d *DB) AfterCommit(ctx context.Context, do func()) {
	if t := d.carriedTransaction(ctx); t != nil {
		t.ended = append(t.ended, do)
	}
}

// NoteChange makes Changes return another number after the commit of the transaction that ctx carries.
func (d *DB) NoteChange(ctx context.Context) { d.AfterCommit(ctx, func() { d.changes.Add(1) }) }

// Changes implements authstore.Changes.
func (d *DB) Changes() uint64 { return d.changes.Load() }

// beginTransaction begins a transaction. It returns a function that gives the connection back after
// the transaction.
func (d *DB) beginTransaction(ctx context.Context) (tx bun.Tx, release func(), err error) {
	if d.dialect.WriteWait > 0 {
		return d.beginInTurn(ctx)
	}
	if tx, err = d.writer.BeginTx(ctx, nil); err != nil {
		return tx, func() {}, err
	}
	for _, first := range [...]struct {
		applies   bool
		statement string
	}{{transaction.IsLong(ctx), d.dialect.LongBegin}, {transaction.IsExclusive(ctx), d.dialect.ExclusiveBegin}} {
		if first.applies && first.statement != "" && err == nil {
			_, err = tx.ExecContext(ctx, first.statement)
		}
	}
	if err != nil {
		_ = tx.Rollback() // nothing was changed
	}
	return tx, func() {}, err
}

// errBusy is a fault and not an error of the driver, so that no caller tries again after the time
// has passed.
var errBusy = fault.New(fault.Unavailable, "the database is busy with other changes")

// beginInTurn begins a transaction in a database with one writer at a time, which may be another
// process. It limits the wait for the turn, not the work. It keeps the connection between its
// tries, so that the callers get their turns in order.
func (d *DB) beginInTurn(ctx context.Context) (tx bun.Tx, release func(), err error) {
	most := d.dialect.WriteWait
	switch {
	case transaction.IsLong(ctx):
		most *= maxRuns
	case transaction.IsBrief(ctx):
		most = min(most, briefWait)
	}
	waiting, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	conn, err := d.writer.Conn(waiting)
	if err == nil {
		for {
			if tx, err = conn.BeginTx(ctx, nil); !d.is(err, Retrying) || waiting.Err() != nil {
				break
			}
		}
		release = func() { _ = conn.Close() } // the transaction returns the error
		if err != nil {
			release()
		}
	}
	if (d.is(err, Retrying) || errors.Is(err, context.DeadlineExceeded)) && ctx.Err() == nil {
		err = errBusy
	}
	return tx, release, err
}

// classifyEnd classifies the error that ended a transaction. If the context ended, the driver
// reports that the transaction does not exist.
func (d *DB) classifyEnd(ctx context.Context, err error) error {
	if errors.Is(err, sql.ErrTxDone) && ctx.Err() != nil {
		return ctx.Err()
	}
	return d.ClassifyError(err)
}

// failureHook is the query hook that keeps the error of a failed statement in its transaction.
type failureHook struct{ db *DB }

func (failureHook) BeforeQuery(ctx context.Context, _ *bun.QueryEvent) context.Context { return ctx }

func (s failureHook) AfterQuery(ctx context.Context, e *bun.QueryEvent) {
	if e.Err == nil || errors.Is(e.Err, sql.ErrNoRows) {
		return
	}
	if t := s.db.carriedTransaction(ctx); t != nil && t.failure == nil {
		t.failure = e.Err
	}
}

// UpdateSchema applies the missing migrations and logs their names. If migrate is false
// (MIGRATE_ON_START), it applies no migration, and returns an error if one is missing. It returns
// the errors of Migrate.
func (d *DB) UpdateSchema(ctx context.Context, migrate bool, log *logrus.Entry) error {
	if !migrate {
		return d.checkSchema(ctx)
	}
	applied, err := d.Migrate(ctx)
	if len(applied) > 0 { // also those before one that failed
		log.WithField("migrations", applied).Info("migrations are applied to the database")
	}
	return err
}

// checkSchema returns an error if a migration is missing.
func (d *DB) checkSchema(ctx context.Context) error {
	pending, err := d.Pending(ctx)
	if err != nil {
		return err
	}
	switch n := len(pending); n {
	case 0:
		return nil
	case 1:
		return errors.New("a migration is missing and MIGRATE_ON_START is false: run 'tollgate migrate'")
	default:
		return fmt.Errorf("%d migrations are missing and MIGRATE_ON_START is false: run 'tollgate migrate'", n)
	}
}
