package registryrecords_test

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/relational/registryrecords"
	"github.com/tollgate-dev/tollgate/adapters/relational/relationaltest"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/registrystore/registrystoretest"
)

func TestQuarantine(t *testing.T) {
	for name, open := range relationaltest.Databases(t) {
		t.Run(name, func(t *testing.T) {
			registrystoretest.RunQuarantine(t, func(t *testing.T) registrystoretest.QuarantineStores {
				db := open(t)
				return registrystoretest.QuarantineStores{
					Quarantine: newStores(db).Quarantine,
					Writer:     registryrecords.NewServers(db.DB, registryrecords.Config{}), Runner: db.DB,
				}
			})
		})
	}
}

// TestQuarantineHoldsAgainstOldPrograms writes what a program would that does not know the
// quarantine, and upgrades a database in which one has shown something again (contract C-22).
func TestQuarantineHoldsAgainstOldPrograms(t *testing.T) {
	for kind, open := range relationaltest.Databases(t) {
		t.Run(kind, func(t *testing.T) {
			db := open(t)
			for _, statement := range insertQuarantine(kind) {
				if err := db.Execute(t.Context(), statement); err != nil {
					t.Fatal(err)
				}
			}
			for _, statement := range []string{
				"UPDATE versions SET status = 'active', status_message = '' WHERE name = 'com.example/s7'",
				"UPDATE versions SET status = 'deprecated', is_latest = is_latest WHERE name = 'com.example/s8'",
				`INSERT INTO versions (name, version, status, status_message, status_changed_at, published_at, updated_at, is_latest, document)
					SELECT name, version, 'active', '', status_changed_at, published_at, updated_at, is_latest, document FROM versions WHERE name = 'com.example/s9'
					ON CONFLICT (name, version) DO UPDATE SET status = excluded.status`,
			} {
				if err := db.Execute(t.Context(), statement); err == nil ||
					!strings.Contains(err.Error(), "the version is in quarantine") {
					t.Errorf("%s: %v, want it refused", statement, err)
				}
			}
			for _, statement := range []string{
				"UPDATE versions SET status_message = 'another' WHERE name = 'com.example/s7'",
				"UPDATE versions SET status = 'deleted' WHERE name = 'com.example/s7'",
				"DELETE FROM quarantine WHERE name = 'com.example/s7'",
				"UPDATE versions SET status = 'active' WHERE name = 'com.example/s7'",
			} {
				if err := db.Execute(t.Context(), statement); err != nil {
					t.Errorf("%s: %v", statement, err)
				}
			}
		})
	}
}

// insertQuarantine returns the statements that put one version of each of 3,000 servers in
// quarantine.
func insertQuarantine(kind string) []string {
	numbers, at := "generate_series(1, 3000) AS n (i)", "now()"
	if kind == relationaltest.SQLite {
		numbers, at = "(WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) SELECT i FROM n) AS n", "0"
	}
	document := map[string]string{relationaltest.PostgreSQL: "'{}'::bytea", relationaltest.SQLite: "x'7b7d'"}[kind]
	latest := map[string]string{relationaltest.PostgreSQL: "true", relationaltest.SQLite: "1"}[kind]
	return []string{
		"INSERT INTO servers (name) SELECT 'com.example/s' || n.i FROM " + numbers,
		"INSERT INTO versions (name, version, status, status_message, status_changed_at, published_at, updated_at, is_latest, document) SELECT 'com.example/s' || n.i, '1.0.0', 'deleted', 'r', " +
			at + ", " + at + ", " + at + ", " + latest + ", " + document + " FROM " + numbers,
		"INSERT INTO quarantine (name, version, reason, since, added_by) SELECT 'com.example/s' || n.i, '1.0.0', 'r', " + at + ", '' FROM " + numbers,
		"INSERT INTO quarantined_versions (name, version, status, status_message, status_changed_at) SELECT 'com.example/s' || n.i, '1.0.0', 'active', '', " + at + " FROM " + numbers,
		map[string]string{
			relationaltest.PostgreSQL: "VACUUM ANALYZE quarantine, quarantined_versions",
			relationaltest.SQLite:     "ANALYZE",
		}[kind],
	}
}

// TestQuarantineIsFoundByIndexes checks that no lookup reads the whole tables.
func TestQuarantineIsFoundByIndexes(t *testing.T) {
	whole := map[string]*regexp.Regexp{
		relationaltest.PostgreSQL: regexp.MustCompile("Seq Scan"), relationaltest.SQLite: regexp.MustCompile("SCAN"),
	}
	name := parse(t, registry.ParseName, "com.example/s7")
	patterns := []registry.Pattern{
		parse(t, registry.ParsePattern, "com.example/s77*"), parse(t, registry.ParsePattern, "com.example/s9"),
	}
	for kind, open := range relationaltest.Databases(t) {
		t.Run(kind, func(t *testing.T) {
			db := open(t)
			for _, statement := range insertQuarantine(kind) {
				if err := db.Execute(t.Context(), statement); err != nil {
					t.Fatal(err)
				}
			}
			s := newStores(db).Quarantine
			for call, do := range map[string]func(ctx context.Context) (int, error){
				"Entries": func(ctx context.Context) (int, error) {
					l, err := s.Entries(ctx, name)
					return len(l), err
				},
				"PriorStatuses": func(ctx context.Context) (int, error) {
					l, err := s.PriorStatuses(ctx, name)
					return len(l), err
				},
				"List": func(ctx context.Context) (int, error) {
					l, err := s.List(ctx, registrystore.QuarantineQuery{Patterns: patterns, Limit: 30})
					return len(l), err
				},
			} {
				plans, err := db.Plans(t.Context(), func(ctx context.Context) error {
					n, err := do(ctx)
					if err == nil && n == 0 {
						t.Errorf("%s found nothing", call)
					}
					return err
				})
				if err != nil || len(plans) != 1 {
					t.Fatalf("%s: %d plans, %v", call, len(plans), err)
				}
				for query, plan := range plans {
					if whole[kind].MatchString(plan) {
						t.Errorf("%s reads a whole table:\n%s\n%s", call, query, plan)
					}
				}
			}
		})
	}
}

// TestBrokenQuarantine checks that a row that breaks a rule of the model is not returned, and is
// not the mistake of the caller.
func TestBrokenQuarantine(t *testing.T) {
	name := parse(t, registry.ParseName, "com.example/s7")
	for kind, open := range relationaltest.Databases(t) {
		t.Run(kind, func(t *testing.T) {
			db := open(t)
			for _, statement := range append(insertQuarantine(kind),
				"UPDATE quarantine SET reason = '' WHERE name = 'com.example/s7'") {
				if err := db.Execute(t.Context(), statement); err != nil {
					t.Fatal(err)
				}
			}
			if found, err := newStores(db).Quarantine.Entries(t.Context(),
				name); !fault.Is(err, fault.Internal) || strings.Contains(fault.PublicMessage(err), "reason") {
				t.Errorf("Entries with a broken reason = %+v, %v, want fault.Internal", found, err)
			}
		})
	}
}

// parse returns the value of a text.
func parse[V any](t *testing.T, parse func(string) (V, error), text string) V {
	t.Helper()
	v, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
