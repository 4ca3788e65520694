package registryrecords_test

import (
	"fmt"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/relational/registryrecords"
	"github.com/tollgate-dev/tollgate/adapters/relational/relationaltest"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestChangesOfAccessRules: they change their number of the revision, and no other one.
func TestChangesOfAccessRules(t *testing.T) {
	relationaltest.InEach(t, func(t *testing.T, db *relationaltest.Database) {
		changes, end := registryrecords.WatchChanges(db.DB, newStores(db))
		t.Cleanup(end)
		before, err := changes.Revision(t.Context())
		must.Succeed(t, err)
		if _, err := db.Exec(t.Context(), "INSERT INTO access_rules (name, settings, managed_by) VALUES ('a', '{}', '')"); err != nil {
			t.Fatal(err)
		}
		after, err := changes.Revision(t.Context())
		same := before
		same.Access = after.Access
		if err != nil || after.Access == before.Access || after != same {
			t.Errorf("before %+v, after %+v, %v", before, after, err)
		}
	})
}

// TestNotifications checks that PostgreSQL notifies a process of the changes of others, of those
// that use no port too, and of the names of servers of which they delete versions.
func TestNotifications(t *testing.T) {
	open, ok := relationaltest.Databases(t)[relationaltest.PostgreSQL]
	if !ok {
		t.Skip("TEST_DATABASE_URL is not set")
	}
	db := open(t)
	changes, end := registryrecords.NewChanges(db.DB, registryrecords.NewServers(db.DB, registryrecords.Config{}))
	t.Cleanup(end)
	await.Until(t, "the process listens", func() bool { return changes.Hint() > 0 })
	_, position, _ := changes.Removals(1 << 62)
	for _, statement := range []string{
		"INSERT INTO servers (name) VALUES ('com.example/a')",
		`INSERT INTO versions (name, version, status, status_message, status_changed_at, published_at, updated_at, is_latest, document)
			VALUES ('com.example/a', '1', 'active', '', now(), now(), now(), true, '{}')`,
		"UPDATE versions SET status = 'deleted'",
		"DELETE FROM versions",
	} {
		before := changes.Hint()
		must.Succeed(t, db.Execute(t.Context(), statement))
		if statement[:6] != "INSERT" {
			await.Until(t, statement+": the name", func() bool {
				names, end, _ := changes.Removals(position)
				if len(names) == 0 || names[0] != "com.example/a" {
					return false
				}
				position = end
				return true
			})
		} else if statement[:20] == "INSERT INTO versions" {
			await.Until(t, statement, func() bool { return changes.Hint() != before })
		}
	}
}

// TestLostChanges checks that a database that lost changes has another revision after as many
// others: of versions, of removals and of views.
func TestLostChanges(t *testing.T) {
	const version = `INSERT INTO versions (name, version, status, status_message, status_changed_at, published_at, updated_at, is_latest, document)
		VALUES ('com.example/a', '%s', 'active', '', %s, %[2]s, %[2]s, false, %[3]s)`
	const view = "INSERT INTO registry_views (name, include, exclude, deprecated, access) VALUES ('%s', '*', '', 'show', 'public')"
	relationaltest.InEach(t, func(t *testing.T, db *relationaltest.Database) {
		now, document := "now()", `'\x7b7d'`
		if db.Kind() != relationaltest.PostgreSQL {
			now, document = "(SELECT 1767323045678901 + count(*) FROM versions)", "x'7b7d'"
		}
		publish := func(n string) string { return fmt.Sprintf(version, n, now, document) }
		changes, end := registryrecords.NewChanges(db.DB,
			registryrecords.NewServers(db.DB, registryrecords.Config{}))
		t.Cleanup(end)
		read := func() registrystore.Revision {
			t.Helper()
			r, err := changes.Revision(t.Context())
			must.Succeed(t, err)
			return r
		}
		db.Fill(t, "INSERT INTO servers (name) VALUES ('com.example/a')", publish("0"),
			"CREATE TABLE kept AS SELECT * FROM registry_changes")
		for _, add := range []func(n string) []string{
			func(n string) []string { return []string{publish(n)} },
			func(n string) []string {
				return []string{publish(n), "UPDATE versions SET status = 'deleted' WHERE version = '" + n + "'"}
			},
			func(n string) []string { return []string{fmt.Sprintf(view, n)} },
		} {
			db.Fill(t, add("lost")...)
			lost := read()
			db.Fill(t, "DELETE FROM versions WHERE version = 'lost'", "DELETE FROM registry_views",
				"DELETE FROM registry_changes",
				"INSERT INTO registry_changes SELECT * FROM kept")
			db.Fill(t, add("other")...)
			other := read()
			if lost == other || lost.Removals != 0 && lost.Removals == other.Removals {
				t.Errorf("the revision after as many other changes is the same: %+v, %+v", lost, other)
			}
			db.Fill(t, "DELETE FROM versions WHERE version = 'other'", "DELETE FROM registry_views",
				"DELETE FROM registry_changes",
				"INSERT INTO registry_changes SELECT * FROM kept")
		}
	})
}
