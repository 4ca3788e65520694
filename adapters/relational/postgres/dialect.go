package postgres

import (
	"embed"
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
