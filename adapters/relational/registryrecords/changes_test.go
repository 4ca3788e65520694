package registryrecords_test

import (
	"context"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/relational/registryrecords"
	"github.com/tollgate-dev/tollgate/adapters/relational/relationaltest"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/registrystore/registrystoretest"
	"github.com/tollgate-dev/tollgate/test/await"
)

func TestChanges(t *testing.T) {
	for name, open := range relationaltest.Databases(t) {
		t.Run(name, func(t *testing.T) {
			registrystoretest.RunChanges(t, func(t *testing.T) registrystoretest.ChangesStores {
				own := open(t)
				other := own.OpenAgain(t)
				stores := func(db *relationaltest.Database) (registrystoretest.ServerStores, *registryrecords.Servers) {
					s := registryrecords.NewServers(db.DB, registryrecords.Config{})
					return registrystoretest.ServerStores{Reader: s, Writer: s, Free: s, Runner: db.DB}, s
				}
				ours, servers := stores(own)
				theirs, others := stores(other)
				changes, end := registryrecords.NewChanges(own.DB, servers)
				t.Cleanup(end)
				grants := 0
				ownViews, otherViews := registryrecords.NewViews(own.DB, servers), registryrecords.NewViews(other.DB, others)
				return registrystoretest.ChangesStores{Own: ours, Other: theirs, OwnViews: ownViews, OtherViews: otherViews, Changes: changes, Alter: func(ctx context.Context) error {
					grants++
					pattern, err := registry.ParsePattern("com.example/*")
					if err != nil {
						return err
					}
					holder := registry.Holder(time.Unix(int64(grants), 0).String())
					return registryrecords.NewGrants(other.DB).Add(ctx, registry.Grant{Holder: holder, Action: registry.ActionPublish, Pattern: pattern})
				}}
			})
		})
	}
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
	await.Until(t, 10*time.Second, "the process listens", func() bool { return changes.Hint() > 0 })
	_, position, _ := changes.Removals(1 << 62)
	for _, statement := range []string{
		"INSERT INTO servers (name) VALUES ('com.example/a')",
		`INSERT INTO versions (name, version, status, status_message, status_changed_at, published_at, updated_at, is_latest, document)
			VALUES ('com.example/a', '1', 'active', '', now(), now(), now(), true, '{}')`,
		"UPDATE versions SET status = 'deleted'",
		"DELETE FROM versions",
	} {
		before := changes.Hint()
		if err := db.Execute(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
		if statement[:6] != "INSERT" {
			await.Until(t, 10*time.Second, statement+": the name", func() bool {
				names, end, _ := changes.Removals(position)
				if len(names) == 0 || names[0] != "com.example/a" {
					return false
				}
				position = end
				return true
			})
		} else if statement[:20] == "INSERT INTO versions" {
			await.Until(t, 10*time.Second, statement, func() bool { return changes.Hint() != before })
		}
	}
}
