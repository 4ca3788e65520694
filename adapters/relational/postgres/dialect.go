package postgres

import (
	"database/sql"
	"database/sql/driver"
	"embed"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/driver/pgdriver"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
)

// Migrations has the files of the migrations in the folder migrations.
//
//go:embed migrations
var Migrations embed.FS

// migrationLock is the key of the advisory lock of migrations: "tollgate" in ASCII.
const migrationLock = 0x746f6c6c67617465

// operatorLock is the key of the advisory lock of transaction.Exclusive: "operator" in ASCII.
const operatorLock = 0x6f70657261746f72

// lockWait is how long a migration may wait for a table, and so keep others waiting for it. It is
// shorter than their statement timeout.
const lockWait = time.Second

var syntax = database.Syntax{
	TimeType:     "timestamptz",
	CurrentTime:  "now()",
	TimeArgument: func(t time.Time) any { return t.UTC() },
	Placeholders: numberPlaceholders,
	RowLock:      "NO KEY UPDATE",
}

// migrationsOf returns the migrations. They run under an advisory lock, over connections of their
// own.
//
// A migration that waits for a table makes all later users of the table wait. So it gives up soon,
// lets the others go first, and is tried again.
func migrationsOf(c Config, config *pgdriver.Config) database.Migrations {
	wait := min(lockWait, c.statementTimeout()/2)
	return database.Migrations{
		Files: Migrations,
		Table: "SELECT count(*) FROM pg_class WHERE oid = to_regclass('migrations')",
		Lock: []string{
			"SELECT pg_advisory_xact_lock(" + strconv.FormatInt(migrationLock, 10) + ")",
			"SELECT set_config('lock_timeout', '" + strconv.FormatInt(wait.Milliseconds(), 10) + "', true)",
		},
		Open: func() (*bun.DB, func()) {
			own := newPool(c, &connector{config: config})
			return own, func() { _ = own.Close() } // every answered transaction is stored already
		},
		RetryTime: c.MigrationTimeout,
	}
}

// numberPlaceholders replaces the question marks of a query by $1, $2 and so on. The query must
// have no other question marks.
func numberPlaceholders(query string) string {
	var b strings.Builder
	for n := 1; ; n++ {
		before, after, found := strings.Cut(query, "?")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		b.WriteByte('$')
		b.WriteString(strconv.Itoa(n))
		query = after
	}
}

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
