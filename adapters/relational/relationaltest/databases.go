package relationaltest

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/relational/postgres/postgrestest"
	"github.com/tollgate-dev/tollgate/adapters/relational/sqlite"
)

// Databases returns, by kind, functions that open an empty, migrated database: SQLite always,
// PostgreSQL if TEST_DATABASE_URL names a server whose user may create databases. Each call opens
// another database.
func Databases(t testing.TB) map[string]func(t testing.TB) *Database {
	t.Helper()
	all := map[string]func(t testing.TB) *Database{
		SQLite: func(t testing.TB) *Database {
			t.Helper()
			dir := t.TempDir()
			WriteMigrated(t, dir)
			db := OpenSQLite(t, dir)
			db.Observe(planRecorder{})
			return db
		},
	}
	if os.Getenv(postgrestest.Variable) != "" {
		all[PostgreSQL] = func(t testing.TB) *Database {
			t.Helper()
			db := OpenPostgres(t, postgrestest.NewMigrated(t))
			db.Observe(planRecorder{})
			return db
		}
	}
	return all
}

// WriteMigrated writes an SQLite file that has the current schema into a folder.
func WriteMigrated(t testing.TB, dir string) {
	t.Helper()
	content, err := migratedFile()
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, sqlite.File), content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// migratedFile returns an SQLite file that has the current schema. It migrates once in a process.
var migratedFile = sync.OnceValues(func() (file []byte, err error) {
	dir, err := os.MkdirTemp("", "tollgate-migrated-")
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
	return os.ReadFile(filepath.Join(dir, sqlite.File))
})
