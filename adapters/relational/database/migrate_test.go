package database_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/relational/methodrecords"
	"github.com/tollgate-dev/tollgate/adapters/relational/postgres/postgrestest"
	"github.com/tollgate-dev/tollgate/adapters/relational/registryrecords"
	"github.com/tollgate-dev/tollgate/adapters/relational/relationaltest"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/must"
)

// emptyDatabases returns, by kind, functions that create an empty database and return a function
// that opens it.
func emptyDatabases() map[string]func(t *testing.T) (open func() *relationaltest.Database) {
	return map[string]func(t *testing.T) func() *relationaltest.Database{
		"sqlite": func(t *testing.T) func() *relationaltest.Database {
			dir := t.TempDir()
			return func() *relationaltest.Database { return relationaltest.OpenSQLite(t, dir) }
		},
		"postgres": func(t *testing.T) func() *relationaltest.Database {
			address := postgrestest.NewEmpty(t)
			return func() *relationaltest.Database { return relationaltest.OpenPostgres(t, address) }
		},
	}
}

// history is a database that gets one migration after the other, without anyone connected in
// between, and how tests get copies of it.
type history struct {
	open, copied func(t *testing.T) *relationaltest.Database
}

func histories() map[string]func(t *testing.T) history {
	return map[string]func(t *testing.T) history{
		"sqlite": func(t *testing.T) history {
			dir := t.TempDir()
			return history{
				func(t *testing.T) *relationaltest.Database { return relationaltest.OpenSQLite(t, dir) },
				func(t *testing.T) *relationaltest.Database {
					to := t.TempDir()
					must.Succeed(t, os.CopyFS(to, os.DirFS(dir)))
					return relationaltest.OpenSQLite(t, to)
				},
			}
		},
		"postgres": func(t *testing.T) history {
			address := postgrestest.NewEmpty(t)
			return history{
				func(t *testing.T) *relationaltest.Database { return relationaltest.OpenPostgres(t, address) },
				func(t *testing.T) *relationaltest.Database {
					return relationaltest.OpenPostgres(t, postgrestest.NewCopy(t, address))
				},
			}
		},
	}
}

func TestMigrationsRunFromEveryHistoricVersion(t *testing.T) {
	for kind, begin := range histories() {
		t.Run(kind, func(t *testing.T) {
			h := begin(t)
			var all []string
			t.Run("nothing", func(t *testing.T) {
				var err error
				if all, err = h.open(t).Pending(t.Context()); err != nil || len(all) == 0 {
					t.Fatalf("Pending of an empty database = %q, %v", all, err)
				}
			})
			for k := range len(all) + 1 {
				t.Run(fmt.Sprintf("to %d", k), func(t *testing.T) {
					got, err := h.open(t).MigrateTo(t.Context(), k)
					if err != nil || !slices.Equal(got, all[max(k-1, 0):k]) {
						t.Fatalf("MigrateTo(%d) = %q, %v", k, got, err)
					}
				})
				if testing.Short() && k%3 != 0 && k < len(all)-12 { // make test-long begins at each
					continue
				}
				t.Run(fmt.Sprintf("from %d", k), func(t *testing.T) { migrateFrom(t, h.copied(t), all, k, kind) })
			}
		})
	}
}

// insertServers returns statements that every version of the schema accepts. They add so many
// servers that a search uses the index of the parts of names.
func insertServers(kind string) []string {
	at, document := "'2026-01-02T03:04:05.678901Z'", `'\x7b7d'`
	if kind == "sqlite" {
		at, document = "1767323045678901", "x'7b7d'"
	}
	numbers, latest := "generate_series(1, 200) AS n (i)", "true"
	if kind == "sqlite" {
		numbers, latest = "(WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200) SELECT i FROM n) AS n", "1"
	}
	const columns = "(name, version, status, status_message, status_changed_at, published_at, updated_at, is_latest, document)"
	times := at + "," + at + "," + at + ", " + latest + ", " + document
	return []string{
		"INSERT INTO servers (name) SELECT 'com.abt/x-' || n.i FROM " + numbers,
		"INSERT INTO versions " + columns + " SELECT 'com.abt/x-' || n.i, '1.0', 'active', '', " + times +
			" FROM " + numbers,
		"INSERT INTO grants (holder, action, pattern) VALUES ('somebody', 'edit', '*')",
		"INSERT INTO servers (name) VALUES ('com.example/old')",
		"INSERT INTO versions " + columns +
			" VALUES ('com.example/old', '1.0 é', 'deprecated', 'use another', " + times + ")",
		"INSERT INTO remote_owners (url, name) VALUES ('https://old.example/mcp', 'com.example/old')",
		"INSERT INTO remotes (name, version, url, claim) VALUES ('com.example/old', '1.0 é', 'https://old.example/mcp', 'https://old.example/mcp')",
	}
}

// requirePublished checks that the rows of insertServers are unchanged.
func requirePublished(t *testing.T, db *relationaltest.Database) {
	t.Helper()
	servers := registryrecords.NewServers(db.DB, registryrecords.Config{RemoteURLUnique: true})
	name, err := registry.ParseName("com.example/old")
	must.Succeed(t, err)
	got, err := servers.Latest(t.Context(), name, false)
	if err != nil || got.Version.String() != "1.0 é" || got.Status != registry.StatusDeprecated ||
		got.StatusMessage != "use another" ||
		!got.PublishedAt.Equal(epoch) || !got.UpdatedAt.Equal(epoch) || !got.Latest || string(got.Document) != "{}" {
		t.Errorf("Latest of the old server = %+v, %v", got, err)
	}
	if err := publish(t, db, servers, "com.example/new", "https://old.example/mcp"); !fault.Is(err, fault.Conflict) {
		t.Errorf("publishing the address of the old server: %v, want a conflict", err)
	}
}

func migrateFrom(t *testing.T, db *relationaltest.Database, all []string, k int, kind string) {
	t.Helper()
	if got, err := db.Pending(t.Context()); err != nil || !slices.Equal(got, all[k:]) {
		t.Errorf("Pending after %d migrations = %q, %v", k, got, err)
	}
	if k > 0 {
		db.Fill(t, insertServers(kind)...)
	}
	if got, err := db.Migrate(t.Context()); err != nil || !slices.Equal(got, all[k:]) {
		t.Fatalf("Migrate = %q, %v", got, err)
	}
	if got, err := db.Migrate(t.Context()); err != nil || len(got) != 0 {
		t.Errorf("Migrate again = %q, %v", got, err)
	}
	if got, err := registryrecords.NewStores(db.DB, registryrecords.Config{}).Grants.Of(t.Context(), "somebody"); err != nil || len(got) != min(k, 1) {
		t.Errorf("the old grants = %v, %v", got, err)
	}
	if k > 0 {
		requirePublished(t, db)
	}
	servers := registryrecords.NewServers(db.DB, registryrecords.Config{})
	for search, want := range map[string]int{"abc": 0, "D": 1, "/o": 1, "ld": 1, "e/old": 1} {
		if p, err := servers.List(t.Context(), registrystore.Query{Limit: 1, Search: search}); err != nil ||
			len(p.Records) != min(k, want) {
			t.Errorf("a search for %q finds %d (%v)", search, len(p.Records), err)
		}
	}
	methods := 35 // a new database on PostgreSQL has none
	if kind == "postgres" {
		methods = 0
	}
	if got, err := methodrecords.NewMethods(db.DB).List(t.Context()); err != nil || len(got) != methods {
		t.Errorf("List returned %d methods, %v", len(got), err)
	}
}

// TestMigrationsAreLogged checks that an upgrade logs each migration when it has been applied, with its
// time, and that a new database logs none of them.
func TestMigrationsAreLogged(t *testing.T) {
	var lines bytes.Buffer
	log := logrus.New()
	log.SetOutput(&lines)
	db := relationaltest.NewSQLite(t)
	db.Log(log.WithField("part", "database"))
	old, err := db.MigrateTo(t.Context(), 40)
	if err != nil || lines.Len() > 0 {
		t.Fatalf("a new database: error %v, logged %s", err, &lines)
	}
	applied, err := db.Migrate(t.Context())
	if err != nil || len(old) != 40 || len(applied) == 0 {
		t.Fatalf("%d and %d migrations, error %v", len(old), len(applied), err)
	}
	got := strings.Split(strings.TrimSpace(lines.String()), "\n")
	if len(got) != len(applied) {
		t.Fatalf("%d lines for %d migrations", len(got), len(applied))
	}
	for i, name := range applied {
		if !regexp.MustCompile(`a migration is applied.* migration=` + name + ` .*took=[0-9.]+m?s`).MatchString(got[i]) {
			t.Errorf("the line of %s is %s", name, got[i])
		}
	}
}

func TestManyProcessesMigrateAtOnce(t *testing.T) {
	for kind, place := range emptyDatabases() {
		t.Run(kind, func(t *testing.T) {
			open := place(t)
			var mu sync.Mutex
			var applied []string
			var all sync.WaitGroup
			for range 5 {
				db := open()
				all.Go(func() {
					got, err := db.Migrate(t.Context())
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					defer mu.Unlock()
					applied = append(applied, got...)
				})
			}
			all.Wait()
			slices.Sort(applied)
			if len(applied) != len(slices.Compact(slices.Clone(applied))) {
				t.Errorf("a migration was applied twice: %q", applied)
			}
			if got, err := open().Pending(t.Context()); err != nil || len(got) != 0 {
				t.Errorf("Pending = %q, %v", got, err)
			}
		})
	}
}

// TestMigrationsLetOthersPass locks a table as a backup does while a migration waits for it: other
// transactions can read the table in the meantime, although the migration waits for it longer.
func TestMigrationsLetOthersPass(t *testing.T) {
	address := postgrestest.NewEmpty(t)
	db, others := relationaltest.OpenPostgres(t, address), relationaltest.OpenPostgres(t, address)
	const first = 7 // the number of migrations before the one that changes sessions
	if _, err := db.MigrateTo(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	migrated := make(chan error, 1)
	err := others.Atomically(t.Context(), func(ctx context.Context) error {
		if err := lockSessions(ctx, others); err != nil {
			return err
		}
		go func() {
			_, err := db.Migrate(t.Context())
			migrated <- err
		}()
		for range 3 {
			awaitWaiting(t, others)
			if err := others.Execute(t.Context(), "SELECT id FROM sessions"); err != nil {
				return err
			}
		}
		return nil
	})
	must.Succeed(t, err)
	if err := <-migrated; err != nil {
		t.Errorf("the migration after the other transactions: %v", err)
	}
}

// lockSessions locks the table sessions in the transaction of ctx, as a backup does.
func lockSessions(ctx context.Context, db *relationaltest.Database) error {
	return db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		_, err := db.ExecStatement(ctx, tx, "LOCK TABLE sessions IN ACCESS SHARE MODE")
		return err
	})
}

// awaitWaiting waits until a migration waits for a table that another transaction uses.
func awaitWaiting(t *testing.T, db *relationaltest.Database) {
	t.Helper()
	await.Until(t, "a migration that waits for a table", func() bool {
		n, err := db.QueryInt(t.Context(),
			`SELECT count(*) FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock'
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`)
		must.Succeed(t, err)
		return n > 0
	})
}

func TestOtherDatabasesAreRefused(t *testing.T) {
	cases := map[string]struct{ change, message string }{
		"newer": {
			"INSERT INTO migrations SELECT '9999_later', sum, applied_at FROM migrations WHERE name = '0001_registry'",
			"newer version",
		},
		"changed": {"UPDATE migrations SET sum = 'x' WHERE name = '0002_auth'", "0002_auth of the database differs"},
		"other": {
			"UPDATE migrations SET name = '0000_first' WHERE name = '0001_registry'",
			"where this program has 0001_registry",
		},
	}
	for kind, open := range relationaltest.Databases(t) {
		for name, c := range cases {
			t.Run(kind+"/"+name, func(t *testing.T) {
				db := open(t)
				must.Succeed(t, db.Execute(t.Context(), c.change))
				_, migrate := db.Migrate(t.Context())
				_, pending := db.Pending(t.Context())
				for _, err := range []error{migrate, pending} {
					if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), c.message) {
						t.Errorf("got %v, want a conflict with the text %q", err, c.message)
					}
				}
			})
		}
	}
}

// TestStepsOfOlderVersions checks the steps of databases with 0, 2 and 3 migrations.
func TestStepsOfOlderVersions(t *testing.T) {
	for kind, place := range emptyDatabases() {
		t.Run(kind, func(t *testing.T) {
			db := place(t)()
			for _, applied := range []int{0, 2, 3} {
				if _, err := db.MigrateTo(t.Context(), applied); err != nil {
					t.Fatal(err)
				}
				steps, err := db.Steps(t.Context())
				if err != nil || len(steps) < 7 || steps[0].Name != "0001_registry" {
					t.Fatalf("Steps = %v, %v", steps, err)
				}
				for i, s := range steps {
					if age := time.Since(s.AppliedAt); (i < applied) != (age < time.Hour && age > -time.Hour) {
						t.Errorf("of %d applied, step %d is %v", applied, i, s)
					}
				}
			}
		})
	}
}

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC)

func publish(
	t *testing.T, db *relationaltest.Database, s *registryrecords.Servers, name string, url registry.RemoteURL,
) error {
	t.Helper()
	n, err := registry.ParseName(name)
	must.Succeed(t, err)
	v, err := registry.ParseVersion("1.0.0")
	must.Succeed(t, err)
	now := epoch
	return db.Atomically(t.Context(), func(ctx context.Context) error {
		if _, err := s.Lock(ctx, n); err != nil {
			return err
		}
		return s.Save(ctx, []registrystore.Change{{
			Release: registry.Release{
				Name: n, Version: v, Status: registry.StatusActive, StatusChangedAt: now, PublishedAt: now,
				UpdatedAt: now, Latest: true,
			},
			Document: []byte("{}"), Remotes: []registry.RemoteURL{url},
		}})
	})
}
