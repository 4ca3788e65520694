package registryrecords_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/relational/registryrecords"
	"github.com/tollgate-dev/tollgate/adapters/relational/relationaltest"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/test/must"
)

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
	change := func(version string, hours int, latest bool) registrystore.Change {
		c, at := publication(t, "com.example/a"), epoch.Add(time.Duration(hours)*time.Hour)
		c.Release.Version, c.Release.Latest = parse(t, registry.ParseVersion, version), latest
		c.Release.StatusChangedAt, c.Release.PublishedAt, c.Release.UpdatedAt = at, at, at
		return c
	}
	cases := map[string]registrystore.Change{
		"this version of the server exists already":                    change("1.0.0", 1, false),
		"another version of the server was published at the same time": change("2.0.0", 0, false),
		"another version of the server is the latest":                  change("2.0.0", 1, true),
	}
	relationaltest.InEach(t, func(t *testing.T, db *relationaltest.Database) {
		servers := registryrecords.NewServers(db.DB, registryrecords.Config{})
		must.Succeed(t, saveLocked(t, db, servers, change("1.0.0", 0, true)))
		for message, c := range cases {
			f, ok := fault.As(saveLocked(t, db, servers, c))
			if !ok || f.Kind != fault.Conflict || f.Message != message {
				t.Errorf("got %v, want the message %q", f, message)
			}
		}
	})
}

// TestSearchSkipsNamesWithoutRows searches for servers. All of them except the last have only
// deleted versions.
func TestSearchSkipsNamesWithoutRows(t *testing.T) {
	relationaltest.InEach(t, func(t *testing.T, db *relationaltest.Database) {
		servers := registryrecords.NewServers(db.DB, registryrecords.Config{})
		const hidden = 8
		for i := range hidden + 1 {
			c := publication(t, fmt.Sprintf("com.example/server-%d", i))
			if i < hidden {
				c.Release.Status = registry.StatusDeleted
			}
			must.Succeed(t, saveLocked(t, db, servers, c))
		}
		for _, text := range []string{"SERVER", "r-"} {
			got, err := servers.List(t.Context(), registrystore.Query{Search: text, Limit: 2})
			if err != nil || len(got.Records) != 1 || got.Records[0].Name.String() != "com.example/server-8" {
				t.Errorf("List with the search %q = %+v, %v", text, got, err)
			}
		}
	})
}

// TestAddressesMayBecomeUniqueLater turns the rule on in a database with two servers that have the
// same address.
func TestAddressesMayBecomeUniqueLater(t *testing.T) {
	const address = "https://one.example/mcp"
	relationaltest.InEach(t, func(t *testing.T, db *relationaltest.Database) {
		free, unique := registryrecords.NewServers(db.DB, registryrecords.Config{}),
			registryrecords.NewServers(db.DB, registryrecords.Config{RemoteURLUnique: true})
		for _, name := range []string{"com.example/a", "com.example/b"} {
			must.Succeed(t, publish(t, db, free, name, address))
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

// TestMirroredServersGiveAddressesUp publishes an address of a mirrored server that an instance of
// a former version made the owner.
func TestMirroredServersGiveAddressesUp(t *testing.T) {
	const address = "https://one.example/mcp"
	relationaltest.InEach(t, func(t *testing.T, db *relationaltest.Database) {
		servers := registryrecords.NewServers(db.DB, registryrecords.Config{RemoteURLUnique: true})
		mirrored := publication(t, "com.example/mirrored", address)
		mirrored.Release.Origin = registry.Origin{Mirror: "corp", URL: "https://registry.example", FetchedAt: epoch}
		must.Succeed(t, saveLocked(t, db, servers, mirrored))
		db.Fill(t,
			"INSERT INTO remote_owners (url, name) SELECT url, name FROM remotes", "UPDATE remotes SET claim = url",
		)
		if err := publish(t, db, servers, "com.example/a", address); err != nil {
			t.Errorf("a server that is published here: %v", err)
		}
		if err := publish(t, db, servers, "com.example/b", address); !fault.Is(err, fault.Conflict) {
			t.Errorf("a second one: %v", err)
		}
	})
}

func publish(
	t *testing.T, db *relationaltest.Database, s *registryrecords.Servers, name string, url registry.RemoteURL,
) error {
	t.Helper()
	return saveLocked(t, db, s, publication(t, name, url))
}

// publication returns a new version of a server.
func publication(t *testing.T, name string, urls ...registry.RemoteURL) registrystore.Change {
	t.Helper()
	return registrystore.Change{
		Release: registry.Release{
			Name: parse(t, registry.ParseName, name), Version: parse(t, registry.ParseVersion, "1.0.0"),
			Status: registry.StatusActive, StatusChangedAt: epoch, PublishedAt: epoch, UpdatedAt: epoch, Latest: true,
		},
		Document: []byte("{}"), Remotes: urls,
	}
}

// parse returns the value of a text.
func parse[V any](t *testing.T, parse func(string) (V, error), text string) V {
	t.Helper()
	v, err := parse(text)
	must.Succeed(t, err)
	return v
}

var errRollBack = errors.New("the transaction is rolled back")

// TestSearchFollowsTheDatabase searches after changes of another process, and in a transaction that
// is rolled back: its name must not be found, and the next server, which may get its id, must be.
func TestSearchFollowsTheDatabase(t *testing.T) {
	relationaltest.InEach(t, func(t *testing.T, db *relationaltest.Database) {
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
		must.Succeed(t, publish(t, db, other, "com.example/b", "https://b.example/mcp"))
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
		must.Succeed(t, publish(t, db, other, "com.example/a", "https://a.example/mcp"))
		find(t.Context(), "com.example/a", "com.example/b")
	})
}
