package sqlite

import (
	"database/sql"
	dbdriver "database/sql/driver"
	"errors"
	"strings"

	driver "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
)

// gateMessage is in the messages of the triggers that refuse what the database already has an entry
// against (migration 0030).
const gateMessage = "tollgate: "

// classifyError returns the class of an error, by the result codes of
// https://sqlite.org/rescode.html.
func classifyError(err error) database.Class {
	var e *driver.Error
	if !errors.As(err, &e) {
		if errors.Is(err, sql.ErrConnDone) || errors.Is(err, dbdriver.ErrBadConn) {
			return database.Away
		}
		return database.Unknown
	}
	switch e.Code() {
	case codes.SQLITE_CONSTRAINT_UNIQUE, codes.SQLITE_CONSTRAINT_PRIMARYKEY:
		return database.Taken
	case codes.SQLITE_CONSTRAINT_TRIGGER:
		if strings.Contains(e.Error(), gateMessage) {
			return database.Taken
		}
	}
	switch e.Code() {
	case codes.SQLITE_IOERR_WRITE, codes.SQLITE_IOERR_FSYNC, codes.SQLITE_IOERR_TRUNCATE, codes.SQLITE_IOERR_SHMSIZE:
		return database.Unwritable // for example, because a quota is exceeded
	}
	switch e.Code() & 0xff { // the primary code
	case codes.SQLITE_BUSY, codes.SQLITE_LOCKED:
		return database.Retrying
	case codes.SQLITE_FULL, codes.SQLITE_READONLY:
		return database.Unwritable
	case codes.SQLITE_IOERR, codes.SQLITE_CANTOPEN, codes.SQLITE_NOMEM, codes.SQLITE_PERM:
		return database.Away
	default:
		return database.Unknown
	}
}
