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
	Unknown  Class = iota // none of the others: a defect
	Taken                 // a unique constraint stands against it
	Away                  // no connection, no answer in time, or no room
	Retrying              // rolled back in favour of another transaction; may be run again
	Refused               // the database's own text must not be stored as it is, such as broken UTF-8
)

// fault classifies the error of a query, once: no rows is fault.NotFound, a
// broken unique constraint fault.Conflict, a database that is away or busy
// fault.Unavailable, all else a fault of kind Internal. A context's error and
// what is a fault already stay as they are.
func (d *DB) fault(err error) error {
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
	case Away, Retrying:
		return fault.Wrap(fault.Unavailable, "", "the database is not available", err)
	case Refused:
		return fault.Wrap(fault.Invalid, "", "the text has characters that cannot be stored", err)
	default:
		return fault.Wrap(fault.Internal, "", "the database failed", err)
	}
}

// retrying tells whether the transaction that ended with err may be run again.
func (d *DB) retrying(err error) bool {
	return err != nil && d.dialect.Classify(err) == Retrying
}
