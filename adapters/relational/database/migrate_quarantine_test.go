package database_test

import (
	"slices"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/relational/registryrecords"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestMigrationHidesQuarantineAgain migrates a database in which a program that does not know the
// quarantine has shown a version in quarantine, and published another one of a server in quarantine
// (contract C-22).
func TestMigrationHidesQuarantineAgain(t *testing.T) {
	for kind, place := range emptyDatabases() {
		t.Run(kind, func(t *testing.T) {
			db := place(t)()
			all, err := db.Pending(t.Context())
			must.Succeed(t, err)
			if _, err := db.MigrateTo(t.Context(), slices.Index(all, "0030_quarantine_gate")); err != nil {
				t.Fatal(err)
			}
			yes, no, document, times := "true", "false", `'\x7b7d'`, []string{
				"'2026-01-01T00:00:00Z'", "'2026-01-02T00:00:00Z'",
			}
			if kind == "sqlite" {
				yes, no, document, times = "1", "0", "x'7b7d'", []string{"1767225600000000", "1767312000000000"}
			}
			version := func(name, version, status, at, latest string) string {
				return "INSERT INTO versions (name, version, status, status_message, status_changed_at, published_at, updated_at, is_latest, document) VALUES ('" +
					name + "', '" + version + "', '" + status + "', '', " + at + ", " + at + ", " + at + ", " + latest +
					", " + document + ")"
			}
			db.Fill(t,
				"INSERT INTO servers (name) VALUES ('com.example/a'), ('com.example/b'), ('com.example/c')",
				version("com.example/a", "1.0.0", "active", times[0], no),
				version("com.example/a", "2.0.0", "active", times[1], yes),
				version("com.example/b", "1.0.0", "deleted", times[0], no),
				version("com.example/b", "2.0.0", "deprecated", times[1], yes),
				version("com.example/c", "1.0.0", "active", times[0], yes),
				"INSERT INTO quarantine (name, version, reason, since, added_by) VALUES ('com.example/a', '2.0.0', 'one', "+times[1]+
					", ''), ('com.example/b', '', 'all', "+times[1]+", '')",
				"INSERT INTO quarantined_versions (name, version, status, status_message, status_changed_at) VALUES ('com.example/a', '2.0.0', 'deprecated', 'x', "+
					times[1]+"), ('com.example/b', '1.0.0', 'active', '', "+times[0]+")",
			)
			if _, err := db.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			servers, held := registryrecords.NewServers(db.DB, registryrecords.Config{}),
				registryrecords.NewStores(db.DB, registryrecords.Config{}).Quarantine
			for server, want := range map[string]struct{ latest, first, second, prior string }{
				"com.example/a": {"1.0.0", "active ", "deleted one", "deprecated"},
				"com.example/b": {"2.0.0", "deleted ", "deleted all", "deprecated"},
				"com.example/c": {"1.0.0", "active ", "", ""},
			} {
				name, err := registry.ParseName(server)
				must.Succeed(t, err)
				latest, err := servers.Latest(t.Context(), name, true)
				if err != nil || latest.Version.String() != want.latest {
					t.Errorf("the latest of %s is %s, %v; want %s", server, latest.Version, err, want.latest)
				}
				for text, status := range map[string]string{"1.0.0": want.first, "2.0.0": want.second} {
					v, err := registry.ParseVersion(text)
					must.Succeed(t, err)
					got, err := servers.Version(t.Context(), name, v, true)
					if status != "" && (err != nil || string(got.Status)+" "+got.StatusMessage != status) {
						t.Errorf("%s %s is %s %s, %v; want %s", server, text, got.Status,
							got.StatusMessage, err, status)
					}
				}
				prior, err := held.PriorStatuses(t.Context(), name)
				if err != nil || want.prior != "" && string(prior[len(prior)-1].Status) != want.prior {
					t.Errorf("the prior statuses of %s are %+v, %v; want %s of 2.0.0", server, prior, err, want.prior)
				}
			}
		})
	}
}
