package relational

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/pause"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

const (
	maxRuns   = 6                    // of one transaction that the database asks to run again
	firstWait = 4 * time.Millisecond // before the second run; doubled for each next one
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

func (d *DB) carried(ctx context.Context) *running {
	t, _ := ctx.Value(carrier{d}).(*running)
	return t
}

// Atomically runs do as one transaction (ports/transaction). Runs that lost
// against another transaction are repeated, at most five times. A statement
// that failed, and a joined call that returned an error, keep the whole from
// being stored, also when do goes on and returns nil.
func (d *DB) Atomically(ctx context.Context, do func(ctx context.Context) error) error {
	if t := d.carried(ctx); t != nil {
		err := do(ctx)
		if err != nil && t.spoilt == nil {
			t.spoilt = err
		}
		return err
	}
	wait := firstWait
	for run := 1; ; run++ {
		err := d.once(ctx, do)
		if run == maxRuns || !d.retrying(err) {
			return err
		}
		if !pause.For(ctx, wait/2+rand.N(wait)) {
			return ctx.Err()
		}
		wait *= 2
	}
}

// once runs do in one transaction. A panic of do passes through, after the
// transaction is rolled back.
func (d *DB) once(ctx context.Context, do func(ctx context.Context) error) error {
	tx, err := d.writer.BeginTx(ctx, nil)
	if err != nil {
		return d.ended(ctx, err)
	}
	open := true
	defer func() {
		if open {
			_ = tx.Rollback() // what made it roll back is told already; the database forgets it either way
		}
	}()
	t := &running{tx: tx}
	if err := do(context.WithValue(ctx, carrier{d}, t)); err != nil {
		return err
	}
	if t.spoilt != nil {
		return d.ended(ctx, t.spoilt)
	}
	open = false
	return d.ended(ctx, tx.Commit())
}

// ended classifies why a transaction did not take place. An end of the context
// reaches the driver as a transaction that is gone.
func (d *DB) ended(ctx context.Context, err error) error {
	if errors.Is(err, sql.ErrTxDone) && ctx.Err() != nil {
		return ctx.Err()
	}
	return d.fault(err)
}

// spoiler is the query hook that spoils the transaction of a failed statement.
type spoiler struct{ db *DB }

func (spoiler) BeforeQuery(ctx context.Context, _ *bun.QueryEvent) context.Context { return ctx }

func (s spoiler) AfterQuery(ctx context.Context, e *bun.QueryEvent) {
	if e.Err == nil || errors.Is(e.Err, sql.ErrNoRows) {
		return
	}
	if t := s.db.carried(ctx); t != nil && t.spoilt == nil {
		t.spoilt = e.Err
	}
}
