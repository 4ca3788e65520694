package database

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// Dialect is everything that differs between the databases. The package that opens a database
// provides it.
type Dialect struct {
	Syntax     Syntax
	Migrations Migrations
	// Classify returns the class of a driver's error.
	Classify func(err error) Class
	// CallTimeout limits a call as a whole: the wait for a connection, the statements and their
	// commit. 0 means no limit. It does not apply to work that is marked as long
	// (ports/transaction): LongBegin, if it is not empty, is the first statement of its
	// transactions and sets the limit of statements for this work.
	CallTimeout time.Duration
	LongBegin   string
	// ExclusiveBegin, if it is not empty, is the first statement of a transaction of
	// transaction.Exclusive, after LongBegin. A dialect with one writer at a time needs none.
	ExclusiveBegin string
	// WriteWait limits how long a transaction waits for its turn to write, if the database has one
	// writer at a time. Long work waits a multiple of it. 0 means no limit.
	WriteWait time.Duration
	// Breaker refuses calls while the database is away. It is nil if the database cannot be away.
	Breaker *Breaker
	// WriteProbe returns a statement that fails if the database cannot be written. It is optional.
	WriteProbe func() string
	// DataVersion returns a number that is another one after each commit of other connections than
	// the one that it reads it on. It is nil if the database has no such number.
	DataVersion func(ctx context.Context) (int64, error)
	// Listen calls notify with the text of each notification of a channel, and with an empty text
	// when notifications may have been lost, until ctx ends. It is nil if the database sends no
	// notifications.
	Listen func(ctx context.Context, channel string, notify func(text string))
}

// Class is what a driver's error means for the caller.
type Class uint8

// The classes of errors.
const (
	Unknown    Class = iota // any other error: a defect
	Taken                   // a unique constraint does not allow the change
	Away                    // the database answered that it cannot do this now
	Crowded                 // the server has no connection left for this process
	Lost                    // there is no connection, or no answer arrived on it
	Unwritable              // the database can be read but not written: no space, or a standby
	Retrying                // rolled back in favour of another transaction; may be run again
	Refused                 // the database cannot store the text, for example because it is not UTF-8
)

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

// BrokenRow returns the fault for a stored value that breaks a rule of the model. Another program
// wrote it, so it is a defect and not a mistake of the caller.
func BrokenRow(err error) error {
	return fault.Wrap(fault.Internal, "a record of the database breaks a rule", err)
}

// isRetryable reports whether the database requests that the transaction that ended with err runs
// again.
func (d *DB) isRetryable(err error) bool {
	return err != nil && d.dialect.Classify(err) == Retrying
}

// isLost reports whether err is a connection that could not be made, or broke.
func (d *DB) isLost(err error) bool {
	return err != nil && d.dialect.Classify(err) == Lost
}

// isCrowded reports whether err is a connection that the server refused because all are in use.
func (d *DB) isCrowded(err error) bool {
	return err != nil && d.dialect.Classify(err) == Crowded
}
