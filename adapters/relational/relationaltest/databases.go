package relationaltest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/uptrace/bun/driver/pgdriver"

	"github.com/tollgate-dev/tollgate/adapters/relational/postgres/postgrestest"
	"github.com/tollgate-dev/tollgate/adapters/relational/sqlite"
)

// Databases returns, by kind, functions that open an empty, migrated database: SQLite always,
// PostgreSQL if TEST_DATABASE_URL names a server whose user may create databases. Each call opens
// another database.
func Databases(t *testing.T) map[string]func(t *testing.T) *Database {
	t.Helper()
	return databasesWith(migratedFile, postgrestest.NewMigrated)
}

// Filled are databases with the same rows. Each is a copy of one that is filled once in a process.
type Filled struct {
	file    func() ([]byte, error)
	address func() (string, error)
}

// NewFilled returns databases with the rows of statements, which depend on the kind.
func NewFilled(statements func(kind string) []string) *Filled {
	return &Filled{
		file:    sync.OnceValues(func() ([]byte, error) { return filledFile(statements(SQLite)) }),
		address: sync.OnceValues(func() (string, error) { return filledDatabase(statements(PostgreSQL)) }),
	}
}

// Databases returns functions like Databases.
func (f *Filled) Databases(t *testing.T) map[string]func(t *testing.T) *Database {
	t.Helper()
	return databasesWith(f.file, func(t testing.TB) string {
		t.Helper()
		original, err := f.address()
		if err != nil {
			t.Fatal(err)
		}
		return postgrestest.NewCopy(t, original)
	})
}

func databasesWith(
	file func() ([]byte, error), address func(t testing.TB) string,
) map[string]func(t *testing.T) *Database {
	all := map[string]func(t *testing.T) *Database{
		SQLite: func(t *testing.T) *Database {
			t.Helper()
			dir := t.TempDir()
			writeFile(t, dir, file)
			db := OpenSQLite(t, dir)
			db.Observe(planRecorder{})
			return db
		},
	}
	if os.Getenv(postgrestest.Variable) != "" {
		all[PostgreSQL] = func(t *testing.T) *Database {
			t.Helper()
			db := OpenPostgres(t, address(t))
			db.Observe(planRecorder{})
			return db
		}
	}
	return all
}

// WriteMigrated writes an SQLite file that has the current schema into a folder.
func WriteMigrated(t testing.TB, dir string) {
	t.Helper()
	writeFile(t, dir, migratedFile)
}

func writeFile(t testing.TB, dir string, file func() ([]byte, error)) {
	t.Helper()
	content, err := file()
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, sqlite.File), content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// migratedFile returns an SQLite file that has the current schema. It migrates once in a process.
var migratedFile = sync.OnceValues(func() ([]byte, error) { return filledFile(nil) })

// filledFile returns an SQLite file that has the current schema, and rows.
func filledFile(statements []string) (file []byte, err error) {
	dir, err := os.MkdirTemp("", "tollgate-filled-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // a temporary folder; the system removes what is left
	db, closeDB, err := sqlite.Open(context.Background(), sqlite.Config{Dir: dir, BusyTimeout: 5 * time.Second})
	if err != nil {
		return nil, err
	}
	_, err = db.Migrate(context.Background())
	closeDB()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, sqlite.File)
	filling, err := sql.Open("sqlite", path)
	if err != nil {
		return nil, err
	}
	if err := fill(filling, statements); err != nil { // which moves the log into the file
		return nil, err
	}
	return os.ReadFile(path)
}

// filledDatabase returns the URL of a database on PostgreSQL that has the current schema, and rows.
func filledDatabase(statements []string) (address string, err error) {
	address, err = postgrestest.Create(context.Background())
	if err != nil {
		return "", err
	}
	return address, fill(
		sql.OpenDB(pgdriver.NewConnector(pgdriver.WithDSN(address), pgdriver.WithTimeout(time.Hour))), statements)
}

// fill runs statements and closes the database.
func fill(db *sql.DB, statements []string) error {
	for _, statement := range statements {
		if _, err := db.ExecContext(context.Background(), statement); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", statement, err), db.Close())
		}
	}
	return db.Close()
}
