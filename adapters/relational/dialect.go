package relational

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// Name names a kind of database; the folder of its migrations has that name.
type Name string

// The databases that the queries of this package are written for.
const (
	PostgreSQL Name = "postgres"
	SQLite     Name = "sqlite"
)

// Dialect is what differs between the databases, told by who opens one.
type Dialect struct {
	Name Name
	// Classify returns the class of a driver's error.
	Classify func(err error) Class
	// Maintenance opens a connection for migrations, whose statements may run
	// for minutes, and returns how to close it. The write pool is used where
	// it is nil.
	Maintenance func() (*bun.DB, func())
	// CallTimeout bounds a call as a whole: waiting for a connection, its statements and its commit. 0 is no bound.
	// Work that is marked as long (ports/transaction) has none: LongBegin, where it is not empty, begins its
	// transactions with statements' own bound for such work.
	CallTimeout time.Duration
	LongBegin   string
	// WriteWait bounds how long a transaction waits for its turn to write, where there is one writer at a time; long
	// work waits some times as long. 0 is no bound.
	WriteWait time.Duration
	// Breaker refuses calls while the database is away; nil where it cannot be.
	Breaker *Breaker
	// WriteProbe returns a statement that fails where the database cannot be written; nil for none.
	WriteProbe func() string
	// LockWait is how long a statement of a migration waits for a table that somebody reads or writes. Whoever comes
	// later waits behind it, so then it lets the others go first, and the migration is tried again for MigrationTime.
	// Of PostgreSQL; SQLite has one writer at a time.
	LockWait      time.Duration
	MigrationTime time.Duration
}

// Class is what a driver's error means for the caller.
type Class uint8

// The classes of errors.
const (
	Unknown    Class = iota // none of the others: a defect
	Taken                   // a unique constraint stands against it
	Away                    // it answered that it cannot do this now
	Lost                    // no connection, or no answer over the one that there was
	Unwritable              // it can be read and not written: no room, or a standby
	Retrying                // rolled back in favour of another transaction; may be run again
	Refused                 // the database's own text must not be stored as it is, such as broken UTF-8
)

// classifyError classifies the error of a query, once: no rows is fault.NotFound, a
// broken unique constraint fault.Conflict, a database that is away or busy
// fault.Unavailable, all else a fault of kind Internal. A context's error and
// what is a fault already stay as they are.
func (d *DB) classifyError(err error) error {
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
		return fault.New(fault.NotFound, "", "no such record")
	}
	switch d.dialect.Classify(err) {
	case Taken:
		return fault.Wrap(fault.Conflict, "", "such a record exists already", err)
	case Unwritable:
		return fault.Wrap(fault.Unavailable, "", "the database cannot be written at present", err)
	case Away, Lost, Retrying:
		return fault.Wrap(fault.Unavailable, "", "the database is not available", err)
	case Refused:
		return fault.Wrap(fault.Invalid, "", "the text has characters that cannot be stored", err)
	default:
		return fault.Wrap(fault.Internal, "", "the database failed", err)
	}
}

// isRetryable reports whether the database asks to run the transaction that ended with err again.
func (d *DB) isRetryable(err error) bool {
	return err != nil && d.dialect.Classify(err) == Retrying
}

// isLost reports whether err is a connection that could not be made, or broke.
func (d *DB) isLost(err error) bool {
	return err != nil && d.dialect.Classify(err) == Lost
}
