// Package relationaltest gives tests their own databases, which exist until the test ends. Only
// tests use it.
package relationaltest

import (
	"context"
	"database/sql"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"github.com/uptrace/bun/driver/pgdriver"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/adapters/relational/postgres"
	"github.com/tollgate-dev/tollgate/adapters/relational/sqlite"
)

// The kinds of databases.
const (
	SQLite     = "sqlite"
	PostgreSQL = "postgres"
)

// Database is a database of a test, with access to its tables that the stores do not have.
type Database struct {
	*database.DB

	kind  string
	admin *sql.DB // without the hooks and limits of DB
	open  func(t testing.TB) *Database
}

// OpenAgain opens the database as another process does, until the test ends.
func (d *Database) OpenAgain(t testing.TB) *Database {
	t.Helper()
	return d.open(t)
}

// NewSQLite returns an empty database that is not migrated.
func NewSQLite(t testing.TB) *Database {
	t.Helper()
	return OpenSQLite(t, t.TempDir())
}

// OpenSQLite opens the database in a folder until the test ends.
func OpenSQLite(t testing.TB, dir string) *Database {
	t.Helper()
	db, closeDB, err := sqlite.Open(t.Context(), sqlite.Config{Dir: dir, BusyTimeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(closeDB)
	address := url.URL{
		Scheme: "file", OmitHost: true, Path: filepath.Join(dir, sqlite.File),
		RawQuery: url.Values{
			"_pragma": {"busy_timeout(5000)", "foreign_keys(1)", "cache_size(-16384)", "temp_store(MEMORY)"},
		}.Encode(),
	}
	admin, err := sql.Open("sqlite", address.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admin.Close() })
	return &Database{
		DB: db, kind: SQLite, admin: admin, open: func(t testing.TB) *Database { return OpenSQLite(t, dir) },
	}
}

// OpenPostgres opens the database at a URL until the test ends.
func OpenPostgres(t testing.TB, address string) *Database {
	t.Helper()
	db, closeDB, err := postgres.Open(t.Context(), PostgresConfig(address))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(closeDB)
	admin := sql.OpenDB(pgdriver.NewConnector(pgdriver.WithDSN(address), pgdriver.WithTimeout(time.Hour)))
	t.Cleanup(func() { _ = admin.Close() })
	return &Database{
		DB: db, kind: PostgreSQL, admin: admin, open: func(t testing.TB) *Database { return OpenPostgres(t, address) },
	}
}

// PostgresConfig returns the settings of tests.
func PostgresConfig(address string) postgres.Config {
	return postgres.Config{
		URL: address, MaxConns: 12,
		Timeout: 20 * time.Second, DialTimeout: 5 * time.Second, StatementTimeout: 20 * time.Second,
		MigrationTimeout: time.Minute,
	}
}

// Execute runs a statement as another program would.
func (d *Database) Execute(ctx context.Context, statement string) error {
	_, err := d.admin.ExecContext(ctx, statement)
	return err
}

// QueryInt returns the number that a query finds.
func (d *Database) QueryInt(ctx context.Context, query string) (n int, err error) {
	err = d.admin.QueryRowContext(ctx, query).Scan(&n)
	return n, err
}
