package database

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/internal/pause"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

const (
	// maxTries is how often a call is tried if its connection breaks.
	maxTries = 3
	// crowdedGap is the time between two tries of a call to get a connection of the pool if the
	// server gives out no more, and crowdedTime limits these tries of calls without a time limit.
	crowdedGap  = 10 * time.Millisecond
	crowdedTime = 10 * time.Second
)

var errRefused = errors.New("the database did not answer earlier calls; calls are refused until it answers a probe")

// AwayAfter returns how long a query of one row may take before the database counts as away: a third
// of the time that a call may take, and at least a second.
func (d *DB) AwayAfter() time.Duration { return awayAfter(d.dialect.CallTimeout) }

func awayAfter(callTimeout time.Duration) time.Duration { return max(time.Second, callTimeout/3) }

// boundedCall calls do with the time limit of one call of the database. All transactions, and all
// reads outside of a transaction, use it. It refuses the call at once while the database is away,
// and requests a probe of the database if do got no answer.
func (d *DB) boundedCall(ctx context.Context, do func(ctx context.Context) error) error {
	if d.dialect.Breaker.Refuses() {
		return unavailable(errRefused)
	}
	if d.dialect.CallTimeout == 0 || transaction.IsLong(ctx) {
		began := time.Now()
		return d.classifyCall(ctx, ctx, began, do(ctx))
	}
	began := time.Now()
	bounded, cancel := context.WithDeadline(ctx, began.Add(d.dialect.CallTimeout))
	defer cancel()
	return d.classifyCall(ctx, bounded, began, do(bounded))
}

// classifyCall returns the error for the caller of a call that began at a time, and reports to the
// breaker whether the database answered. It reports nothing if the caller gave up.
func (d *DB) classifyCall(caller, bounded context.Context, began time.Time, err error) error {
	switch {
	case err == nil:
		d.dialect.Breaker.noteAnswer()
		return nil
	case caller.Err() != nil:
		if d.is(err, Lost) || errors.Is(err, sql.ErrTxDone) {
			return caller.Err()
		}
		return err
	case d.is(err, Lost), bounded.Err() != nil && (errors.Is(err, bounded.Err()) || errors.Is(err, sql.ErrTxDone)):
		d.dialect.Breaker.requestProbe(began)
		return unavailable(err)
	}
	if d.dialect.Classify(err) != Unknown {
		d.dialect.Breaker.noteAnswer()
	}
	return err
}

func unavailable(err error) error {
	if fault.Is(err, fault.Unavailable) {
		return err
	}
	return fault.Wrap(fault.Unavailable, "the database is not available", err)
}

// Read returns the result of do, which reads in the transaction that ctx carries, or with the read
// pool. do must change nothing, because it is called again if its connection breaks.
func Read[T any](ctx context.Context, d *DB, do func(ctx context.Context, db bun.IDB) (T, error)) (found T, err error) {
	if t := d.carriedTransaction(ctx); t != nil {
		return do(ctx, t.tx)
	}
	err = d.boundedCall(ctx, func(ctx context.Context) (err error) {
		return d.retryLost(ctx, func() (again bool, err error) {
			found, err = do(ctx, d.reader)
			return true, err
		})
	})
	return found, err
}

// ReadRows returns the records of the rows that a query selects, with all columns that R has.
func ReadRows[R, V any](
	ctx context.Context, d *DB, which func(*bun.SelectQuery) *bun.SelectQuery, toRecord func(*R) (V, error),
) ([]V, error) {
	return Read(ctx, d, func(ctx context.Context, db bun.IDB) (records []V, err error) {
		var rows []R
		err = d.ClassifyError(which(db.NewSelect().Model(&rows)).Scan(ctx))
		records = make([]V, len(rows))
		for i := 0; i < len(rows) && err == nil; i++ {
			records[i], err = toRecord(&rows[i])
		}
		return records, err
	})
}

// retryLost calls try, and calls it again if try allows it and its connection broke. The next
// connection is one that has answered since then or is new. For the last try it is new. If the
// server has no connection left, it waits for one that another call of this process gives back.
func (d *DB) retryLost(ctx context.Context, try func() (again bool, err error)) error {
	began := time.Now()
	for n := 1; ; n++ {
		again, err := try()
		for again && d.is(err, Crowded) && time.Since(began) < cmp.Or(d.dialect.CallTimeout, crowdedTime) &&
			pause.For(ctx, crowdedGap) {
			again, err = try()
		}
		if n == maxTries || !again || !d.is(err, Lost) || d.dialect.Breaker.Refuses() {
			return err
		}
		if d.dialect.Breaker.retireIdleSince(time.Now()); n == maxTries-1 {
			// the server may be ending all connections, also those that have answered since then
			d.dialect.Breaker.retireAll()
		}
		if !pause.For(ctx, firstWait) {
			return err
		}
	}
}

// ClassifyError returns the fault for the error of a query: no rows is fault.NotFound, a broken
// unique constraint fault.Conflict, a database that is away or busy fault.Unavailable, and any
// other error a fault of kind Internal. It returns the error of a context, and an error that is
// already a fault, unchanged.
func (d *DB) ClassifyError(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := fault.As(err); ok {
		return err
	}
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, sql.ErrNoRows):
		return fault.New(fault.NotFound, "no such record")
	}
	switch d.dialect.Classify(err) {
	case Taken:
		return fault.Wrap(fault.Conflict, "such a record exists already", err)
	case Unwritable:
		return fault.Wrap(fault.Unavailable, "the database cannot be written at present", err)
	case Away, Crowded, Lost, Retrying:
		return fault.Wrap(fault.Unavailable, "the database is not available", err)
	case Refused:
		return fault.Wrap(fault.Invalid, "the text has characters that cannot be stored", err)
	default:
		return fault.Wrap(fault.Internal, "the database failed", err)
	}
}

// ClassifyFind returns the fault for the error of a query for one row: none if there is no row.
func (d *DB) ClassifyFind(err, none error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return none
	}
	return d.ClassifyError(err)
}

// BrokenRow returns the fault for a stored value that breaks a rule of the model. Another program
// wrote it, so it is a defect and not a mistake of the caller.
func BrokenRow(err error) error {
	return fault.Wrap(fault.Internal, "a record of the database breaks a rule", err)
}

// is reports whether err is an error of a class.
func (d *DB) is(err error, c Class) bool { return err != nil && d.dialect.Classify(err) == c }
