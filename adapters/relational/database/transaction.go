package database

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/internal/wait"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

const (
	maxRuns   = 6                      // of one transaction that the database asks to run again
	briefWait = 100 * time.Millisecond // of a change that its caller can do without
	firstWait = 4 * time.Millisecond   // before the second run; doubled for each next one
)

var _ transaction.Runner = (*DB)(nil)

// running is the transaction that a context carries.
type running struct {
	tx bun.Tx
	// spoilt is why nothing of it may be stored any more: PostgreSQL would
	// answer the COMMIT after a failed statement with a silent rollback, and
	// a joined Atomically that failed promised to have stored nothing.
	spoilt error
}

// carrier is the key of the transaction of one database in a context, so that
// two databases in one process never mix.
type carrier struct{ db *DB }

func (d *DB) carriedTransaction(ctx context.Context) *running {
	t, _ := ctx.Value(carrier{d}).(*running)
	return t
}

// Transaction returns the transaction that ctx carries, and whether it carries one.
func (d *DB) Transaction(ctx context.Context) (tx bun.Tx, ok bool) {
	if t := d.carriedTransaction(ctx); t != nil {
		return t.tx, true
	}
	return bun.Tx{}, false
}

// Atomically runs do as one transaction (ports/transaction), within the bounds of one call of the
// database. Runs that lost against another transaction are repeated, at most five times, and so are
// those whose connection broke before the commit was sent. A statement that failed, and a joined call
// that returned an error, keep the whole from being stored, also when do goes on and returns nil.
func (d *DB) Atomically(ctx context.Context, do func(ctx context.Context) error) error {
	if t := d.carriedTransaction(ctx); t != nil {
		err := do(ctx)
		if err != nil && t.spoilt == nil {
			t.spoilt = err
		}
		return err
	}
	return d.boundedCall(ctx, func(ctx context.Context) error {
		delay := firstWait
		for run := 1; ; run++ {
			err := d.retryLost(ctx, func() (uncommitted bool, err error) { return d.runOnce(ctx, do) })
			if run == maxRuns || !d.isRetryable(err) {
				d.noteWrite(err)
				return err
			}
			if !wait.For(ctx, delay/2+rand.N(delay)) {
				return ctx.Err()
			}
			delay *= 2
		}
	})
}

// runOnce runs do in one transaction, and reports whether that failed before the commit was sent. A
// panic of do passes through, after the transaction is rolled back.
func (d *DB) runOnce(ctx context.Context, do func(ctx context.Context) error) (uncommitted bool, err error) {
	tx, release, err := d.beginTransaction(ctx)
	if err != nil {
		return true, d.classifyEnd(ctx, err)
	}
	defer release()
	open := true
	defer func() {
		if open {
			_ = tx.Rollback() // what made it roll back is told already; the database forgets it either way
		}
	}()
	t := &running{tx: tx}
	if err := do(context.WithValue(ctx, carrier{d}, t)); err != nil {
		return true, err
	}
	if t.spoilt != nil {
		return true, d.classifyEnd(ctx, t.spoilt)
	}
	open = false
	return false, d.classifyEnd(ctx, tx.Commit())
}

// beginTransaction begins a transaction, and returns it with what gives its connection back once it has ended.
func (d *DB) beginTransaction(ctx context.Context) (tx bun.Tx, release func(), err error) {
	if d.dialect.WriteWait > 0 {
		return d.beginInTurn(ctx)
	}
	tx, err = d.writer.BeginTx(ctx, nil)
	if err == nil && d.dialect.LongBegin != "" && transaction.IsLong(ctx) {
		if _, err = tx.ExecContext(ctx, d.dialect.LongBegin); err != nil {
			_ = tx.Rollback() // nothing was changed
		}
	}
	return tx, func() {}, err
}

// errBusy is not of the driver, so that nobody tries again after all of the time has passed.
var errBusy = fault.New(fault.Unavailable, "", "the database is busy with other changes")

// beginInTurn begins a transaction where there is one writer at a time, which may be another process.
// Only the wait for the turn is bounded, the work is not. The connection is kept from one try to the
// next, so that callers come to their turns in order.
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
			if tx, err = conn.BeginTx(ctx, nil); !d.isRetryable(err) || waiting.Err() != nil {
				break
			}
		}
		release = func() { _ = conn.Close() } // the transaction has told what went wrong
		if err != nil {
			release()
		}
	}
	if (d.isRetryable(err) || errors.Is(err, context.DeadlineExceeded)) && ctx.Err() == nil {
		err = errBusy
	}
	return tx, release, err
}

// classifyEnd classifies why a transaction did not take place. An end of the context
// reaches the driver as a transaction that is gone.
func (d *DB) classifyEnd(ctx context.Context, err error) error {
	if errors.Is(err, sql.ErrTxDone) && ctx.Err() != nil {
		return ctx.Err()
	}
	return d.ClassifyError(err)
}

// spoiler is the query hook that spoils the transaction of a failed statement.
type spoiler struct{ db *DB }

func (spoiler) BeforeQuery(ctx context.Context, _ *bun.QueryEvent) context.Context { return ctx }

func (s spoiler) AfterQuery(ctx context.Context, e *bun.QueryEvent) {
	if e.Err == nil || errors.Is(e.Err, sql.ErrNoRows) {
		return
	}
	if t := s.db.carriedTransaction(ctx); t != nil && t.spoilt == nil {
		t.spoilt = e.Err
	}
}
