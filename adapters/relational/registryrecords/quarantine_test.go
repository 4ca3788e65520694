package registryrecords_test

import (
	"context"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/relational/relationaltest"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// TestQuarantineHoldsAgainstOldPrograms writes what a program would that does not know the
// quarantine, and upgrades a database in which one has shown something again (contract C-22).
func TestQuarantineHoldsAgainstOldPrograms(t *testing.T) {
	relationaltest.InEach(t, func(t *testing.T, db *relationaltest.Database) {
		db.Fill(t, insertQuarantine(db.Kind(), 10)...)
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

// insertQuarantine returns the statements that put one version of each of many servers in
// quarantine.
func insertQuarantine(kind string, servers int) []string {
	at, document, latest, from := "now()", "'{}'::bytea", "true", "'com.example/s' || n.i, '1.0.0'"
	if kind == relationaltest.SQLite {
		at, document, latest = "0", "x'7b7d'", "1"
	}
	all := " FROM " + numbers(kind, servers)
	return []string{
		"INSERT INTO servers (name) SELECT 'com.example/s' || n.i" + all,
		"INSERT INTO versions (name, version, status, status_message, status_changed_at, published_at, updated_at, is_latest, document) SELECT " +
			from + ", 'deleted', 'r', " + strings.Join([]string{at, at, at, latest, document}, ", ") + all,
		"INSERT INTO quarantine (name, version, reason, since, added_by) SELECT " + from + ", 'r', " + at + ", ''" + all,
		"INSERT INTO quarantined_versions (name, version, status, status_message, status_changed_at) SELECT " + from +
			", 'active', '', " + at + all,
		"ANALYZE quarantine", "ANALYZE quarantined_versions",
	}
}

// checkPlansOfQuarantine checks that no lookup reads the whole tables.
func checkPlansOfQuarantine(t *testing.T, db *relationaltest.Database) {
	t.Helper()
	name, s := parse(t, registry.ParseName, "com.example/s7"), newStores(db).Quarantine
	patterns := []registry.Pattern{
		parse(t, registry.ParsePattern, "com.example/s77*"), parse(t, registry.ParsePattern, "com.example/s9"),
	}
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
		t.Run(call, func(t *testing.T) { checkOneIndexedQuery(t, db, "", do) })
	}
}

// TestBrokenQuarantine checks that a row that breaks a rule of the model is not returned, and is
// not the mistake of the caller.
func TestBrokenQuarantine(t *testing.T) {
	name := parse(t, registry.ParseName, "com.example/s7")
	relationaltest.InEach(t, func(t *testing.T, db *relationaltest.Database) {
		db.Fill(t, append(insertQuarantine(db.Kind(), 10),
			"UPDATE quarantine SET reason = '' WHERE name = 'com.example/s7'")...)
		if found, err := newStores(db).Quarantine.Entries(t.Context(),
			name); !fault.Is(err, fault.Internal) || strings.Contains(fault.PublicMessage(err), "reason") {
			t.Errorf("Entries with a broken reason = %+v, %v, want fault.Internal", found, err)
		}
	})
}
