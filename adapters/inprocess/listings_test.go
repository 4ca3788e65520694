package inprocess_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/adapters/inprocess"
	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

// countingServers counts what is read, and fails if failure is set.
type countingServers struct {
	*fakedb.Servers
	lists, versions int
	failure         error
}

func (c *countingServers) List(ctx context.Context, q registrystore.Query) (registrystore.Page, error) {
	c.lists++
	return c.Servers.List(ctx, q)
}

func (c *countingServers) Versions(ctx context.Context, q registrystore.VersionsQuery) (registrystore.Page, error) {
	if c.versions++; c.failure != nil {
		return registrystore.Page{}, c.failure
	}
	q.Bytes = 100 // a few versions
	return c.Servers.Versions(ctx, q)
}

// listingSite is a registry with what reads its listings.
type listingSite struct {
	db      *fakedb.Database
	servers *countingServers
	ports   inprocess.ListingPorts
	at      time.Time
}

func newListingSite() *listingSite {
	db := fakedb.New()
	s := &listingSite{db: db, servers: &countingServers{Servers: fakedb.NewServers(db, false)}, at: noon}
	s.ports = inprocess.ListingPorts{Servers: s.servers, Marks: s.servers.Servers, Quarantine: fakedb.NewQuarantine(db)}
	return s
}

// save stores a version; an empty document keeps the one that is stored.
func (s *listingSite) save(t must.T, server, number, document string, status registry.Status) {
	name, err := registry.ParseName(server)
	must.Succeed(t, err)
	version, err := registry.ParseVersion(number)
	must.Succeed(t, err)
	ctx := context.Background()
	s.at = s.at.Add(time.Millisecond)
	err = s.db.Atomically(ctx, func(ctx context.Context) error {
		releases, err := s.servers.Lock(ctx, name)
		if err != nil {
			return err
		}
		r := registry.Release{Name: name, Version: version, PublishedAt: s.at}
		for _, stored := range releases {
			if stored.Version == version {
				r = stored
			}
		}
		r.Status, r.StatusChangedAt, r.UpdatedAt = status, s.at, s.at
		c := registrystore.Change{Release: r}
		if document != "" {
			c.Document = []byte(document)
		}
		return s.servers.Save(ctx, []registrystore.Change{c})
	})
	must.Succeed(t, err)
}

func remoteDocument(urls ...string) string {
	text := `{"remotes":[`
	for i, u := range urls {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf(`{"type":"streamable-http","url":%q}`, u)
	}
	return text + "]}"
}

// TestListingsOfChanges checks that what is read after changes equals what is read anew, whatever has
// changed.
func TestListingsOfChanges(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := newListingSite()
		kept := inprocess.NewListings(s.ports)
		stored := map[string]bool{}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			for range rapid.IntRange(0, 4).Draw(t, "changes") {
				server := rapid.SampledFrom([]string{"com.example/a", "com.example/B", "com.example/b", "org.example/x"}).Draw(t, "server")
				version := rapid.SampledFrom([]string{"1.0.0", "1.0.1", "2.0.0"}).Draw(t, "version")
				urls := rapid.SliceOfN(rapid.SampledFrom([]string{"https://a.example/mcp", "https://b.example/", "https://c.example/x"}), 0, 3)
				status := rapid.SampledFrom([]registry.Status{registry.StatusActive, registry.StatusDeprecated, registry.StatusDeleted})
				document := remoteDocument(urls.Draw(t, "urls")...)
				if key := server + version; stored[key] && rapid.Bool().Draw(t, "keeps its document") {
					document = ""
				} else if stored[key] = true; rapid.Bool().Draw(t, "nothing") {
					document = "{}"
				}
				s.save(t, server, version, document, status.Draw(t, "status"))
			}
			got, err := kept.Listings(t.Context())
			want, err2 := inprocess.NewListings(s.ports).Listings(t.Context())
			if err != nil || err2 != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("the listings are %v, want %v, errors %v, %v", got, want, err, err2)
			}
		}
	})
}

// TestWithdrawnRemotes checks that the URLs of versions in quarantine and of deleted ones stay known, unless a version
// that is listed has them too.
func TestWithdrawnRemotes(t *testing.T) {
	t.Parallel()
	s := newListingSite()
	for i, one := range []struct {
		status registry.Status
		urls   []string
	}{
		{registry.StatusDeleted, []string{"https://a.example/", "https://old.example/"}}, {registry.StatusActive, []string{"https://a.example/"}},
		{registry.StatusDeleted, []string{"https://a.example/", "https://older.example/"}},
	} {
		s.save(t, "com.example/a", fmt.Sprintf("1.0.%d", i), remoteDocument(one.urls...), one.status)
	}
	got, err := inprocess.NewListings(s.ports).Listings(t.Context())
	want := access.Listing{Remotes: []string{"https://a.example/"}, Withdrawn: []string{"https://old.example/", "https://older.example/"}}
	if len(got) == 1 {
		want.Name = got[0].Name
	}
	if err != nil || !reflect.DeepEqual(got, []access.Listing{want}) {
		t.Errorf("the listings are %+v, error %v, want %+v", got, err, want)
	}
}

// TestListingsReadChangesOnly checks that servers that have not changed are not read again, that many
// changes are one read, and that after an error nothing is missed.
func TestListingsReadChangesOnly(t *testing.T) {
	t.Parallel()
	s := newListingSite()
	const many = 1200
	for n := range many {
		s.save(t, fmt.Sprintf("com.example/s%04d", n), "1.0.0", remoteDocument("https://a.example/"), registry.StatusActive)
	}
	kept := inprocess.NewListings(s.ports)
	read := func(what string, lists bool, versions int) []access.Listing {
		t.Helper()
		s.servers.lists, s.servers.versions = 0, 0
		all, err := kept.Listings(t.Context())
		if err != nil || (s.servers.lists > 0) != lists || s.servers.versions != versions {
			t.Errorf("%s: %d lists and %d servers were read, error %v", what, s.servers.lists, s.servers.versions, err)
		}
		return all
	}
	if all := read("at first", true, 0); len(all) != many {
		t.Errorf("%d servers are listed", len(all))
	}
	read("nothing has changed", false, 0)
	s.save(t, "com.example/s0007", "1.0.0", remoteDocument("https://b.example/"), registry.StatusActive)
	s.save(t, "com.example/new", "1.0.0", remoteDocument("https://c.example/"), registry.StatusActive)
	s.save(t, "com.example/s0009", "1.0.0", "", registry.StatusDeleted)
	s.servers.failure = errors.New("away")
	if _, err := kept.Listings(t.Context()); !errors.Is(err, s.servers.failure) {
		t.Errorf("the error is %v", err)
	}
	s.servers.failure = nil
	all := read("three servers have changed", false, 3)
	byName := map[string]access.Listing{}
	for _, l := range all {
		byName[l.Name.String()] = l
	}
	if len(all) != many+1 || byName["com.example/s0007"].Remotes[0] != "https://b.example/" || byName["com.example/new"].Remotes == nil {
		t.Errorf("%d servers are listed: %v, %v", len(all), byName["com.example/s0007"], byName["com.example/new"])
	}
	if gone := byName["com.example/s0009"]; !gone.Deleted || gone.Remotes != nil || gone.Withdrawn[0] != "https://a.example/" {
		t.Errorf("a server whose versions are deleted is %+v", gone)
	}
	for n := range 600 {
		s.save(t, fmt.Sprintf("com.example/s%04d", n), "1.0.0", remoteDocument("https://d.example/"), registry.StatusActive)
	}
	read("half of the servers have changed", true, 0)
}
