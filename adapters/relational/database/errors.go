package database

import (
	"context"
	"database/sql"
	"errors"

	"github.com/tollgate-dev/tollgate/core/fault"
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
