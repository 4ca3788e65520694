package registryrecords_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/relational/registryrecords"
	"github.com/tollgate-dev/tollgate/adapters/relational/relationaltest"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/registrystore/registrystoretest"
)

func TestServers(t *testing.T) {
	for name, open := range relationaltest.Databases(t) {
		t.Run(name, func(t *testing.T) {
			registrystoretest.RunServers(t, func(t *testing.T) registrystoretest.ServerStores {
				db := open(t)
				servers := registryrecords.NewServers(db.DB, registryrecords.Config{RemoteURLUnique: true})
				free := registryrecords.NewServers(db.DB, registryrecords.Config{})
				return registrystoretest.ServerStores{Reader: servers, Writer: servers, Free: free, Runner: db.DB}
			})
		})
	}
}

// TestServersByIndexes runs the contract tests with searches that always use an index.
func TestServersByIndexes(t *testing.T) {
	for name, open := range relationaltest.Databases(t) {
		t.Run(name, func(t *testing.T) {
			registrystoretest.RunServers(t, func(t *testing.T) registrystoretest.ServerStores {
				db := open(t)
				servers := registryrecords.NewServers(db.DB, registryrecords.Config{RemoteURLUnique: true})
				servers.AlwaysUseIndexes()
				return registrystoretest.ServerStores{Reader: servers, Writer: servers, Free: registryrecords.NewServers(db.DB, registryrecords.Config{}), Runner: db.DB}
			})
		})
	}
}

func TestGrants(t *testing.T) {
	for name, open := range relationaltest.Databases(t) {
		t.Run(name, func(t *testing.T) {
			registrystoretest.RunGrants(t, func(t *testing.T) registrystoretest.GrantStores {
				return registrystoretest.GrantStores{Grants: registryrecords.NewGrants(open(t).DB)}
			})
		})
	}
}

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC)

// saveLocked stores changes of one server in a transaction, as a use case does.
func saveLocked(t *testing.T, db *relationaltest.Database, s *registryrecords.Servers, changes ...registrystore.Change) error {
	t.Helper()
	return db.Atomically(t.Context(), func(ctx context.Context) error {
		if _, err := s.Lock(ctx, changes[0].Release.Name); err != nil {
			return err
		}
		return s.Save(ctx, changes)
	})
}

// TestConflictsNameTheirRule checks that the error names the constraint that does not allow a
// change.
func TestConflictsNameTheirRule(t *testing.T) {
	name, err := registry.ParseName("com.example/a")
	if err != nil {
		t.Fatal(err)
	}
	change := func(version string, hours int, latest bool) registrystore.Change {
		v, err := registry.ParseVersion(version)
		if err != nil {
			t.Fatal(err)
		}
		at := epoch.Add(time.Duration(hours) * time.Hour)
		return registrystore.Change{
			Release:  registry.Release{Name: name, Version: v, Status: registry.StatusActive, StatusChangedAt: at, PublishedAt: at, UpdatedAt: at, Latest: latest},
			Document: []byte("{}"),
		}
	}
	cases := map[string]registrystore.Change{
		"this version of the server exists already":                    change("1.0.0", 1, false),
		"another version of the server was published at the same time": change("2.0.0", 0, false),
		"another version of the server is the latest":                  change("2.0.0", 1, true),
	}
	for kind, open := range relationaltest.Databases(t) {
		t.Run(kind, func(t *testing.T) {
			db := open(t)
			servers := registryrecords.NewServers(db.DB, registryrecords.Config{})
			if err := saveLocked(t, db, servers, change("1.0.0", 0, true)); err != nil {
				t.Fatal(err)
			}
			for message, c := range cases {
				f, ok := fault.As(saveLocked(t, db, servers, c))
				if !ok || f.Kind != fault.Conflict || f.Message != message {
					t.Errorf("got %v, want the message %q", f, message)
				}
			}
		})
	}
}

// TestSearchSkipsNamesWithoutRows searches for servers. All of them except the last have only
// deleted versions.
func TestSearchSkipsNamesWithoutRows(t *testing.T) {
	for kind, open := range relationaltest.Databases(t) {
		t.Run(kind, func(t *testing.T) {
			db := open(t)
			servers := registryrecords.NewServers(db.DB, registryrecords.Config{})
			const hidden = 8
			for i := range hidden + 1 {
				name, err := registry.ParseName(fmt.Sprintf("com.example/server-%d", i))
				if err != nil {
					t.Fatal(err)
				}
				version, err := registry.ParseVersion("1.0.0")
				if err != nil {
					t.Fatal(err)
				}
				status := registry.StatusDeleted
				if i == hidden {
					status = registry.StatusActive
				}
				r := registry.Release{Name: name, Version: version, Status: status, StatusChangedAt: epoch, PublishedAt: epoch, UpdatedAt: epoch, Latest: true}
				if err := saveLocked(t, db, servers, registrystore.Change{Release: r, Document: []byte("{}")}); err != nil {
					t.Fatal(err)
				}
			}
			for _, text := range []string{"SERVER", "r-"} {
				got, err := servers.List(t.Context(), registrystore.Query{Search: text, Limit: 2})
				if err != nil || len(got.Records) != 1 || got.Records[0].Name.String() != "com.example/server-8" {
					t.Errorf("List with the search %q = %+v, %v", text, got, err)
				}
			}
		})
	}
}

// TestAddressesMayBecomeUniqueLater turns the rule on in a database with two servers that have the
// same address.
func TestAddressesMayBecomeUniqueLater(t *testing.T) {
	const address = "https://one.example/mcp"
	for kind, open := range relationaltest.Databases(t) {
		t.Run(kind, func(t *testing.T) {
			db := open(t)
			free, unique := registryrecords.NewServers(db.DB, registryrecords.Config{}), registryrecords.NewServers(db.DB, registryrecords.Config{RemoteURLUnique: true})
			for _, name := range []string{"com.example/a", "com.example/b"} {
				if err := publish(t, db, free, name, address); err != nil {
					t.Fatal(err)
				}
			}
			if err := publish(t, db, unique, "com.example/c", address); !fault.Is(err, fault.Conflict) {
				t.Errorf("a third server with the address: %v", err)
			}
			if err := publish(t, db, unique, "com.example/c", address+"/c"); err != nil {
				t.Errorf("a server with another address: %v", err)
			}
			if err := publish(t, db, free, "com.example/d", address+"/c"); err != nil {
				t.Errorf("a server with an address of another server, while addresses need not be unique: %v", err)
			}
		})
	}
}

func publish(t *testing.T, db *relationaltest.Database, s *registryrecords.Servers, name string, url registry.RemoteURL) error {
	t.Helper()
	n, err := registry.ParseName(name)
	if err != nil {
		t.Fatal(err)
	}
	v, err := registry.ParseVersion("1.0.0")
	if err != nil {
		t.Fatal(err)
	}
	now := epoch
	return saveLocked(t, db, s, registrystore.Change{
		Release:  registry.Release{Name: n, Version: v, Status: registry.StatusActive, StatusChangedAt: now, PublishedAt: now, UpdatedAt: now, Latest: true},
		Document: []byte("{}"), Remotes: []registry.RemoteURL{url},
	})
}
