package postgres

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"

	"github.com/uptrace/bun/driver/pgdriver"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
)

// classifyError returns the class of an error, by the SQLSTATE codes of appendix A of the
// PostgreSQL manual.
func classifyError(err error) database.Class {
	var e pgdriver.Error
	if errors.As(err, &e) {
		return classOf(e.Field('C'))
	}
	var n net.Error
	switch {
	case errors.As(err, &n),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		errors.Is(err, driver.ErrBadConn), errors.Is(err, sql.ErrConnDone), errors.Is(err, errAway):
		return database.Lost
	default:
		return database.Unknown
	}
}

func classOf(state string) database.Class {
	switch state {
	case "23505": // unique_violation
		return database.Taken
	case "40001", "40P01", "55P03": // serialization_failure, deadlock_detected, lock_not_available
		return database.Retrying
	case "22021", "22P05": // character_not_in_repertoire, untranslatable_character
		return database.Refused
	case "57014", // query_canceled: the statement timeout
		"25P03", "25P04": // idle and transaction timeouts
		return database.Away
	case "25006", // read_only_sql_transaction: a standby
		"53100": // disk_full
		return database.Unwritable
	case "53300": // too_many_connections
		return database.Crowded
	case "57P01", "57P02", "57P03", "57P05": // the server stops, starts, or ended the session
		return database.Lost
	}
	if len(state) < 2 {
		return database.Unknown
	}
	switch state[:2] {
	case "08": // connection exceptions
		return database.Lost
	case "53", "58": // no resources, system errors
		return database.Away
	default:
		return database.Unknown
	}
}
