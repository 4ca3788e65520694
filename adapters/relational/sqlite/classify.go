package sqlite

import (
	"database/sql"
	dbdriver "database/sql/driver"
	"errors"

	driver "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"github.com/tollgate-dev/tollgate/adapters/relational"
)

// classify reads the result codes of https://sqlite.org/rescode.html.
func classify(err error) relational.Class {
	var e *driver.Error
	if !errors.As(err, &e) {
		if errors.Is(err, sql.ErrConnDone) || errors.Is(err, dbdriver.ErrBadConn) {
			return relational.Away
		}
		return relational.Unknown
	}
	switch e.Code() {
	case codes.SQLITE_CONSTRAINT_UNIQUE, codes.SQLITE_CONSTRAINT_PRIMARYKEY:
		return relational.Taken
	}
	switch e.Code() & 0xff { // the primary code
	case codes.SQLITE_BUSY, codes.SQLITE_LOCKED:
		return relational.Retrying
	case codes.SQLITE_IOERR, codes.SQLITE_FULL, codes.SQLITE_CANTOPEN, codes.SQLITE_READONLY, codes.SQLITE_NOMEM, codes.SQLITE_PERM:
		return relational.Away
	default:
		return relational.Unknown
	}
}
