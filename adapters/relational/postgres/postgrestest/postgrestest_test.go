package postgrestest

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/uptrace/bun/driver/pgdriver"

	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/must"
)

// killed is the environment variable that makes this program the process that TestAbandoned kills.
const killed = "TEST_KILLED"

func TestMain(m *testing.M) {
	if os.Getenv(killed) != "" {
		waitForKill()
	}
	os.Exit(Run(m))
}

// waitForKill creates databases, prints their names, and waits until the process is killed.
func waitForKill() {
	s, err := connect(context.Background(), os.Getenv(Variable))
	if err == nil {
		migrated, migratedErr := s.createMigrated(context.Background())
		empty, emptyErr := s.createEmpty(context.Background())
		fmt.Println(migrated, empty)
		err = errors.Join(migratedErr, emptyErr)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	select {}
}

// newServer connects to the server as another process does, until the test ends.
func newServer(t *testing.T) *server {
	t.Helper()
	s := mustConnect(t)
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func mustConnect(t *testing.T) *server {
	t.Helper()
	address := os.Getenv(Variable)
	if address == "" {
		t.Skip("needs " + Variable)
	}
	s, err := connect(t.Context(), address)
	must.Succeed(t, err)
	return s
}

// mustCreate returns the name of a new database.
func mustCreate(t *testing.T, create func(ctx context.Context) (string, error)) string {
	t.Helper()
	name, err := create(t.Context())
	must.Succeed(t, err)
	return name
}

// createNamed creates a database with a name, which is dropped after the test.
func createNamed(t *testing.T, s *server, name string) {
	t.Helper()
	must.Succeed(t, s.execute(t.Context(), "CREATE DATABASE "+name))
	t.Cleanup(func() {
		if err := s.execute(context.Background(), "DROP DATABASE IF EXISTS "+name); err != nil {
			t.Error(err)
		}
	})
}

// exists reports whether the server has a database.
func exists(t *testing.T, s *server, name string) (found bool) {
	t.Helper()
	must.Succeed(t, s.pool.QueryRowContext(t.Context(), "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name).
		Scan(&found))
	return found
}

func countMigrations(t *testing.T, s *server, name string) (n int) {
	t.Helper()
	db := sql.OpenDB(pgdriver.NewConnector(pgdriver.WithDSN(s.url(name))))
	defer func() { _ = db.Close() }() // its statements have ended
	if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM pg_tables WHERE tablename = 'migrations'").
		Scan(&n); err != nil || n == 0 {
		return n
	}
	must.Succeed(t, db.QueryRowContext(t.Context(), "SELECT count(*) FROM migrations").Scan(&n))
	return n
}

// TestDatabases checks what is in a new database, that each is another one, and that all are
// dropped when the process ends.
func TestDatabases(t *testing.T) {
	s, other := mustConnect(t), newServer(t)
	empty, first, second := mustCreate(t, s.createEmpty), mustCreate(t, s.createMigrated),
		mustCreate(t, other.createMigrated)
	if n := countMigrations(t, s, empty); n != 0 {
		t.Errorf("the empty database has %d migrations", n)
	}
	if n, m := countMigrations(t, s, first), countMigrations(t, s, second); n == 0 || n != m {
		t.Errorf("the migrated databases have %d and %d migrations", n, m)
	}
	s.drop(first)
	must.Succeed(t, s.close())
	if exists(t, other, empty) || exists(t, other, first) || !exists(t, other, second) {
		t.Error("the databases after the end of the process are not those of the other process")
	}
}

// TestAbandoned kills a process that has databases. The next process drops them, and no others.
func TestAbandoned(t *testing.T) {
	living := newServer(t)
	kept := mustCreate(t, living.createMigrated)
	foreign := []string{
		"tollgate_testing_0123456789abcdef_1", "tollgate_test_abcdefghijklmnop_1", "tollgate_test_0123456789abcdef_1_x",
	}
	for _, name := range foreign {
		createNamed(t, living, name)
	}
	usedKey, unusedKey := living.key^1, living.key^2
	used, unused := nameOf(usedKey, "template"), nameOf(unusedKey, "making")
	if _, err := living.session.ExecContext(t.Context(), "SELECT pg_advisory_lock_shared($1)", usedKey); err != nil {
		t.Fatal(err)
	}
	createNamed(t, living, used)
	createNamed(t, living, unused)
	abandoned := killProcess(t)
	await.Until(t, "databases of an ended process are dropped", func() bool {
		newServer(t).background.Wait()
		return !exists(t, living, unused) &&
			!slices.ContainsFunc(abandoned, func(name string) bool { return exists(t, living, name) })
	})
	for _, name := range append(foreign, kept, used, living.template) {
		if !exists(t, living, name) {
			t.Errorf("%s was dropped", name)
		}
	}
}

// killProcess runs waitForKill in a process of its own, kills it, and returns the names of its
// databases.
func killProcess(t *testing.T) (names []string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$") //nolint:gosec // this program
	cmd.Env = append(os.Environ(), killed+"=yes")
	out, err := cmd.StdoutPipe()
	must.Succeed(t, err)
	must.Succeed(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	_ = cmd.Process.Kill() // it may have ended by itself
	_ = cmd.Wait()         // it ends by a signal, which is an error
	must.Succeed(t, err)
	return strings.Fields(line)
}
