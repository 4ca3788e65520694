// Package relationaltest gives tests databases of their own: empty, migrated,
// and gone after the test. It is for tests only.
package relationaltest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/uptrace/bun/driver/pgdriver"

	"github.com/tollgate-dev/tollgate/adapters/relational"
	"github.com/tollgate-dev/tollgate/adapters/relational/postgres"
	"github.com/tollgate-dev/tollgate/adapters/relational/sqlite"
)

// Databases returns what opens a database for one test, by the name of its
// kind: SQLite always, PostgreSQL where TEST_DATABASE_URL names a server
// whose user may create databases. Each call of one opens another database.
func Databases(t *testing.T) map[string]func(t *testing.T) *relational.DB {
	t.Helper()
	all := map[string]func(t *testing.T) *relational.DB{
		string(relational.SQLite): func(t *testing.T) *relational.DB {
			t.Helper()
			return migrated(t, SQLite(t))
		},
	}
	if address := os.Getenv("TEST_DATABASE_URL"); address != "" {
		template := createDatabase(t, address, "")
		migrateTemplate(t, address, template)
		all[string(relational.PostgreSQL)] = func(t *testing.T) *relational.DB {
			t.Helper()
			return openPostgresAt(t, within(t, address, createDatabase(t, address, template)))
		}
	}
	return all
}

// SQLite returns an empty database that is not migrated.
func SQLite(t testing.TB) *relational.DB {
	t.Helper()
	return OpenSQLite(t, t.TempDir())
}

// OpenSQLite opens the database in the folder until the test ends.
func OpenSQLite(t testing.TB, dir string) *relational.DB {
	t.Helper()
	db, closeDB, err := sqlite.Open(t.Context(), sqlite.Config{Dir: dir, ReadConns: 4, BusyTimeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(closeDB)
	return db
}

// Postgres returns the URL of an empty database that is not migrated, or
// skips the test where TEST_DATABASE_URL is not set.
func Postgres(t testing.TB) (address string) {
	t.Helper()
	server := os.Getenv("TEST_DATABASE_URL")
	if server == "" {
		t.Skip("TEST_DATABASE_URL is not set")
	}
	return within(t, server, createDatabase(t, server, ""))
}

// OpenPostgres opens the database at the URL until the test ends.
func OpenPostgres(t testing.TB, address string) *relational.DB {
	t.Helper()
	return openPostgresAt(t, address)
}

// PostgresConfig returns the settings of tests.
func PostgresConfig(address string) postgres.Config {
	return postgres.Config{
		URL: address, MaxConns: 12, MaxIdleConns: 12, ConnLifetime: time.Hour,
		Timeout: 20 * time.Second, DialTimeout: 5 * time.Second, StatementTimeout: 20 * time.Second, MigrationTimeout: time.Minute,
	}
}

func openPostgresAt(t testing.TB, address string) *relational.DB {
	t.Helper()
	db, closeDB, err := postgres.Open(t.Context(), PostgresConfig(address))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(closeDB)
	return db
}

func migrated(t testing.TB, db *relational.DB) *relational.DB {
	t.Helper()
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return db
}

// migrateTemplate migrates and closes: a database can be copied only while
// nobody is connected to it.
func migrateTemplate(t testing.TB, address, name string) {
	t.Helper()
	db, closeDB, err := postgres.Open(t.Context(), PostgresConfig(within(t, address, name)))
	if err != nil {
		t.Fatal(err)
	}
	defer closeDB()
	migrated(t, db)
}

// createDatabase makes a database that is dropped when the test ends.
func createDatabase(t testing.TB, address, template string) (name string) {
	t.Helper()
	name = "tollgate_test_" + strings.ToLower(rand.Text())
	statement := "CREATE DATABASE " + name
	if template != "" {
		statement += " TEMPLATE " + template
	}
	execute(t, address, statement)
	t.Cleanup(func() { execute(t, address, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)") })
	return name
}

// execute runs one statement on the server. The server refuses to copy a
// template while a connection to it is still closing, and takes one copy at a
// time, so such a refusal is tried again.
func execute(t testing.TB, address, statement string) {
	t.Helper()
	connector, err := pgdriver.NewDriver().OpenConnector(address)
	if err != nil {
		t.Fatal(err)
	}
	server := sql.OpenDB(connector)
	defer func() { _ = server.Close() }() // nothing is lost with it
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		_, err := server.ExecContext(ctx, statement)
		if err == nil {
			return
		}
		var e pgdriver.Error
		if inUse := errors.As(err, &e) && e.Field('C') == "55006"; !inUse {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

func within(t testing.TB, address, database string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal("TEST_DATABASE_URL is not a URL")
	}
	u.Path = "/" + database
	return u.String()
}
