package registryrecords_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
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
				return registrystoretest.ServerStores{Reader: servers, Writer: servers, Free: free, Runner: db.DB, Marks: servers}
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
				return registrystoretest.ServerStores{
					Reader: servers, Writer: servers, Free: registryrecords.NewServers(db.DB, registryrecords.Config{}),
					Runner: db.DB, Marks: servers,
				}
			})
		})
	}
}

func TestGrants(t *testing.T) {
	for name, open := range relationaltest.Databases(t) {
		t.Run(name, func(t *testing.T) {
			registrystoretest.RunGrants(t, func(t *testing.T) registrystoretest.GrantStores {
				return registrystoretest.GrantStores{Grants: newStores(open(t)).Grants}
			})
		})
	}
}

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC)

// saveLocked stores changes of one server in a transaction, as a use case does.
func saveLocked(
	t *testing.T, db *relationaltest.Database, s *registryrecords.Servers, changes ...registrystore.Change,
) error {
	t.Helper()
	return saveWithin(t.Context(), db, s, changes...)
}

// saveWithin stores changes of one server in the transaction that ctx carries, or in a new one.
func saveWithin(
	ctx context.Context, db *relationaltest.Database, s *registryrecords.Servers, changes ...registrystore.Change,
) error {
	return db.Atomically(ctx, func(ctx context.Context) error {
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
			Release: registry.Release{
				Name: name, Version: v, Status: registry.StatusActive, StatusChangedAt: at, PublishedAt: at,
				UpdatedAt: at, Latest: latest,
			},
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
				r := registry.Release{
					Name: name, Version: version, Status: status, StatusChangedAt: epoch, PublishedAt: epoch,
					UpdatedAt: epoch, Latest: true,
				}
				if err := saveLocked(t, db, servers, registrystore.Change{
					Release: r, Document: []byte("{}"),
				}); err != nil {
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
			free, unique := registryrecords.NewServers(db.DB, registryrecords.Config{}),
				registryrecords.NewServers(db.DB, registryrecords.Config{RemoteURLUnique: true})
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

// TestMirroredServersGiveAddressesUp publishes an address of a mirrored server that an instance of
// a former version made the owner.
func TestMirroredServersGiveAddressesUp(t *testing.T) {
	const address = "https://one.example/mcp"
	for kind, open := range relationaltest.Databases(t) {
		t.Run(kind, func(t *testing.T) {
			db := open(t)
			servers := registryrecords.NewServers(db.DB, registryrecords.Config{RemoteURLUnique: true})
			mirrored := publication(t, "com.example/mirrored", address)
			mirrored.Release.Origin = registry.Origin{Mirror: "corp", URL: "https://registry.example", FetchedAt: epoch}
			if err := saveLocked(t, db, servers, mirrored); err != nil {
				t.Fatal(err)
			}
			for _, statement := range []string{
				"INSERT INTO remote_owners (url, name) SELECT url, name FROM remotes", "UPDATE remotes SET claim = url",
			} {
				if err := db.Execute(t.Context(), statement); err != nil {
					t.Fatal(err)
				}
			}
			if err := publish(t, db, servers, "com.example/a", address); err != nil {
				t.Errorf("a server that is published here: %v", err)
			}
			if err := publish(t, db, servers, "com.example/b", address); !fault.Is(err, fault.Conflict) {
				t.Errorf("a second one: %v", err)
			}
		})
	}
}

func publish(
	t *testing.T, db *relationaltest.Database, s *registryrecords.Servers, name string, url registry.RemoteURL,
) error {
	t.Helper()
	return saveLocked(t, db, s, publication(t, name, url))
}

// publication returns a new version of a server.
func publication(t *testing.T, name string, url registry.RemoteURL) registrystore.Change {
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
	return registrystore.Change{
		Release: registry.Release{
			Name: n, Version: v, Status: registry.StatusActive, StatusChangedAt: now, PublishedAt: now, UpdatedAt: now,
			Latest: true,
		},
		Document: []byte("{}"), Remotes: []registry.RemoteURL{url},
	}
}

var errRollBack = errors.New("the transaction is rolled back")

// TestSearchFollowsTheDatabase searches after changes of another process, and in a transaction that
// is rolled back: its name must not be found, and the next server, which may get its id, must be.
func TestSearchFollowsTheDatabase(t *testing.T) {
	for kind, open := range relationaltest.Databases(t) {
		t.Run(kind, func(t *testing.T) {
			db := open(t)
			one, other := registryrecords.NewServers(db.DB, registryrecords.Config{}),
				registryrecords.NewServers(db.DB, registryrecords.Config{})
			find := func(ctx context.Context, want ...string) {
				t.Helper()
				p, err := one.List(ctx, registrystore.Query{Search: "EXAMPLE/", Limit: 10})
				var got []string
				for _, r := range p.Records {
					got = append(got, r.Name.String())
				}
				if err != nil || !slices.Equal(got, want) {
					t.Errorf("the search finds %q, %v, want %q", got, err, want)
				}
			}
			find(t.Context())
			if err := publish(t, db, other, "com.example/b", "https://b.example/mcp"); err != nil {
				t.Fatal(err)
			}
			find(t.Context(), "com.example/b")
			err := db.Atomically(t.Context(), func(ctx context.Context) error {
				if err := saveWithin(ctx, db, one,
					publication(t, "com.example/rolled-back", "https://c.example/mcp")); err != nil {
					return err
				}
				find(ctx, "com.example/b", "com.example/rolled-back")
				return errRollBack
			})
			if !errors.Is(err, errRollBack) {
				t.Fatal(err)
			}
			find(t.Context(), "com.example/b")
			if err := publish(t, db, other, "com.example/a", "https://a.example/mcp"); err != nil {
				t.Fatal(err)
			}
			find(t.Context(), "com.example/a", "com.example/b")
		})
	}
}

// TestFirstSearchOfManyServers searches with several callers at once before the names are in
// memory.
func TestFirstSearchOfManyServers(t *testing.T) {
	db := relationaltest.Databases(t)[relationaltest.SQLite](t)
	for _, statement := range insertCrowd(relationaltest.SQLite, 25_000, 0) {
		if err := db.Execute(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	servers := registryrecords.NewServers(db.DB, registryrecords.Config{})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := servers.List(ended, registrystore.Query{Search: "fuzz-", Limit: 100}); !errors.Is(err,
		context.Canceled) {
		t.Errorf("List with a cancelled context returned %v", err)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			p, err := servers.List(t.Context(), registrystore.Query{Search: "fuzz-", Limit: 100})
			if err != nil || len(p.Records) != 20 || p.More {
				t.Errorf("the search finds %d records, more: %v, %v; want 20", len(p.Records), p.More, err)
			}
		})
	}
	all.Wait()
}

// newStores returns the stores of a database.
func newStores(db *relationaltest.Database) registryrecords.Stores {
	return registryrecords.NewStores(db.DB, registryrecords.Config{})
}
