// Package postgrestest gives tests and measurements their own databases on the PostgreSQL server
// that TEST_DATABASE_URL names. It does not open them.
//
// Migrated databases are copies of a template, which all processes with the same migrations share.
// Databases are dropped in the background, and all are dropped before the process ends. What an
// interrupted process left is dropped by the next one.
package postgrestest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"sync"
	"sync/atomic"
	"testing"
)

// Variable is the environment variable with the URL of the server. Its user may create databases.
const Variable = "TEST_DATABASE_URL"

// shared is the server of this process. The first database connects to it.
var (
	shared   *server
	sharedMu sync.Mutex
	running  atomic.Bool // whether Run runs, which closes the server
)

// Run runs the tests of a package, drops their databases, and returns the exit code. The TestMain
// of a package whose tests use databases calls it.
func Run(m *testing.M) int {
	running.Store(true)
	code := m.Run()
	if err := Close(); err != nil {
		fmt.Fprintln(os.Stderr, "databases of the tests:", err)
		return max(code, 1)
	}
	return code
}

// NewMigrated returns the URL of a new database with the current schema. The database is dropped
// after the test. It skips the test if Variable is not set.
func NewMigrated(t testing.TB) (address string) {
	t.Helper()
	return newDatabase(t, (*server).createMigrated)
}

// NewEmpty returns the URL of a new, empty database. The database is dropped after the test. It
// skips the test if Variable is not set.
func NewEmpty(t testing.TB) (address string) {
	t.Helper()
	return newDatabase(t, (*server).createEmpty)
}

func newDatabase(t testing.TB, create func(s *server, ctx context.Context) (string, error)) (address string) {
	t.Helper()
	if os.Getenv(Variable) == "" {
		t.Skip("needs " + Variable)
	}
	if !running.Load() {
		t.Fatal("the package of this test needs a TestMain that calls postgrestest.Run, which drops the databases")
	}
	s, err := connectShared(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	name, err := create(s, t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.drop(name) })
	return s.url(name)
}

// NewCopy returns the URL of a new copy of a database of this package to which no one is
// connected. The copy is dropped after the test.
func NewCopy(t testing.TB, original string) (address string) {
	t.Helper()
	return newDatabase(t, func(s *server, ctx context.Context) (string, error) {
		u, err := url.Parse(original)
		if err != nil {
			return "", errors.New("the original is not a URL") // the error has the password
		}
		return s.createCopy(ctx, path.Base(u.Path))
	})
}

// Create returns the URL of a new database with the current schema, for programs. Close drops it.
func Create(ctx context.Context) (address string, err error) {
	s, err := connectShared(ctx)
	if err != nil {
		return "", err
	}
	name, err := s.createMigrated(ctx)
	return s.url(name), err
}

// Close drops the databases of this process.
func Close() error {
	sharedMu.Lock()
	defer sharedMu.Unlock()
	if shared == nil {
		return nil
	}
	s := shared
	shared = nil
	return s.close()
}

func connectShared(ctx context.Context) (*server, error) {
	sharedMu.Lock()
	defer sharedMu.Unlock()
	if shared != nil {
		return shared, nil
	}
	address := os.Getenv(Variable)
	if address == "" {
		return nil, errors.New(Variable + " is not set")
	}
	s, err := connect(ctx, address)
	if err != nil {
		return nil, err
	}
	shared = s
	return s, nil
}
