// Package relationaltest gives tests their own databases, which exist until the test ends. Only
// tests use it.
package relationaltest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
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

// Databases returns, by kind, functions that open an empty, migrated database: SQLite always,
// PostgreSQL if TEST_DATABASE_URL names a server whose user may create databases. Each call opens
// another database.
func Databases(t *testing.T) map[string]func(t *testing.T) *Database {
	t.Helper()
	all := map[string]func(t *testing.T) *Database{
		SQLite: func(t *testing.T) *Database {
			t.Helper()
			db := NewSQLite(t)
			migrate(t, db)
			db.Observe(planRecorder{})
			return db
		},
	}
	if server := os.Getenv("TEST_DATABASE_URL"); server != "" {
		template := createDatabase(t, server, "")
		migrateTemplate(t, replaceDatabase(t, server, template))
		all[PostgreSQL] = func(t *testing.T) *Database {
			t.Helper()
			db := OpenPostgres(t, replaceDatabase(t, server, createDatabase(t, server, template)))
			db.Observe(planRecorder{})
			return db
		}
	}
	return all
}

// NewSQLite returns an empty database that is not migrated.
func NewSQLite(t testing.TB) *Database {
	t.Helper()
	return OpenSQLite(t, t.TempDir())
}

// OpenSQLite opens the database in a folder until the test ends.
func OpenSQLite(t testing.TB, dir string) *Database {
	t.Helper()
	db, closeDB, err := sqlite.Open(t.Context(), sqlite.Config{Dir: dir, ReadConns: 4, BusyTimeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(closeDB)
	address := url.URL{
		Scheme: "file", OmitHost: true, Path: filepath.Join(dir, sqlite.File),
		RawQuery: url.Values{"_pragma": {"busy_timeout(5000)", "foreign_keys(1)", "cache_size(-16384)", "temp_store(MEMORY)"}}.Encode(),
	}
	admin, err := sql.Open("sqlite", address.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admin.Close() })
	return &Database{DB: db, kind: SQLite, admin: admin, open: func(t testing.TB) *Database { return OpenSQLite(t, dir) }}
}

// NewPostgres returns the URL of an empty database that is not migrated. It skips the test if
// TEST_DATABASE_URL is not set.
func NewPostgres(t testing.TB) (address string) {
	t.Helper()
	server := os.Getenv("TEST_DATABASE_URL")
	if server == "" {
		t.Skip("TEST_DATABASE_URL is not set")
	}
	return replaceDatabase(t, server, createDatabase(t, server, ""))
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
	return &Database{DB: db, kind: PostgreSQL, admin: admin, open: func(t testing.TB) *Database { return OpenPostgres(t, address) }}
}

// PostgresConfig returns the settings of tests.
func PostgresConfig(address string) postgres.Config {
	return postgres.Config{
		URL: address, MaxConns: 12, MaxIdleConns: 12, ConnLifetime: time.Hour,
		Timeout: 20 * time.Second, DialTimeout: 5 * time.Second, StatementTimeout: 20 * time.Second, MigrationTimeout: time.Minute,
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

func migrate(t testing.TB, db *Database) {
	t.Helper()
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// migrateTemplate migrates a database and closes it: PostgreSQL does not copy a database that has
// connections.
func migrateTemplate(t testing.TB, address string) {
	t.Helper()
	db, closeDB, err := postgres.Open(t.Context(), PostgresConfig(address))
	if err != nil {
		t.Fatal(err)
	}
	defer closeDB()
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// createDatabase creates a database, a copy of the template if there is one, and drops it when the
// test ends.
func createDatabase(t testing.TB, server, template string) (name string) {
	t.Helper()
	name = "tollgate_test_" + strings.ToLower(rand.Text())
	statement := "CREATE DATABASE " + name
	if template != "" {
		statement += " TEMPLATE " + template
	}
	executeOnServer(t, server, statement)
	t.Cleanup(func() { executeOnServer(t, server, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)") })
	return name
}

// executeOnServer runs one statement on the server. The server refuses to copy a template while a
// connection to it is still closing, and makes one copy at a time. After this refusal it tries
// again.
func executeOnServer(t testing.TB, server, statement string) {
	t.Helper()
	connector, err := pgdriver.NewDriver().OpenConnector(server)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	defer func() { _ = db.Close() }() // the statement has ended
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		_, err := db.ExecContext(ctx, statement)
		if err == nil {
			return
		}
		var e pgdriver.Error
		if inUse := errors.As(err, &e) && e.Field('C') == "55006"; !inUse {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// replaceDatabase returns the URL of another database of a server.
func replaceDatabase(t testing.TB, server, name string) string {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal("TEST_DATABASE_URL is not a URL")
	}
	u.Path = "/" + name
	return u.String()
}
