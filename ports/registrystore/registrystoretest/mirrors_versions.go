package registrystoretest

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/mirror"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// tracked returns a state whose hash has the byte n.
func tracked(t *testing.T, server, v string, n byte) mirror.Tracked {
	t.Helper()
	return mirror.Tracked{
		Name: name(t, server), Version: version(t, v), Hash: [32]byte{0, n, 255, '\''}, Status: registry.StatusActive,
		PublishedAt: hour(int(n)),
	}
}

func (s MirrorStores) put(t *testing.T, of mirror.Name, list ...mirror.Tracked) {
	t.Helper()
	if err := s.Mirrored.Put(t.Context(), of, list); err != nil {
		t.Fatal(err)
	}
}

func (s MirrorStores) wantPage(t *testing.T, of mirror.Name, after string, limit int, want ...mirror.Tracked) {
	t.Helper()
	got, err := s.Mirrored.Page(t.Context(), of, after, limit)
	if err != nil || len(got) != len(want) || len(got) > 0 && !reflect.DeepEqual(got, want) {
		t.Errorf("Page(%s, %q, %d) = %+v, %v, want %+v", of, after, limit, got, err, want)
	}
}

func keepsTracked(t *testing.T, s MirrorStores) {
	t.Helper()
	full := tracked(t, "com.example/x", "1.0.0", 1)
	full.StatusChangedAt = hour(7)
	full.Status, full.Message, full.Review = registry.StatusDeprecated, "it's old?",
		registry.ReviewID("7f1d9a3e-0000-4000-8000-000000000001")
	bare := mirror.Tracked{Name: name(t, "com.example/y"), Version: version(t, "draft"), Status: registry.StatusDeleted}
	s.put(t, "corp", bare, full)
	s.put(t, "other", tracked(t, "com.example/x", "1.0.0", 9))
	s.wantPage(t, "corp", "", 10, full, bare)
	full.Hash, full.Review, full.Message = [32]byte{7}, "", ""
	s.put(t, "corp", full)
	s.wantPage(t, "corp", "", 10, full, bare)
	got, err := s.Mirrored.OfServers(t.Context(), "corp", []registry.Name{bare.Name, name(t, "com.example/missing")})
	if err != nil || !reflect.DeepEqual(got, []mirror.Tracked{bare}) {
		t.Errorf("OfServers = %+v, %v, want %+v", got, err, bare)
	}
}

func pagesTracked(t *testing.T, s MirrorStores) {
	t.Helper()
	var all []mirror.Tracked
	for _, server := range []string{"com.example/a", "com.example/a-b", "com.example/aB", "com.example/b"} {
		all = append(all, tracked(t, server, "1.0.0", 1), tracked(t, server, "10.0.0", 2),
			tracked(t, server, "2.0.0", 3))
	}
	s.put(t, "corp", all...)
	s.wantPage(t, "corp", "", 1, all[:3]...)
	s.wantPage(t, "corp", "com.example/a", 2, all[3:9]...)
	s.wantPage(t, "corp", "com.example/aB", 9, all[9:]...)
	s.wantPage(t, "corp", "com.example/b", 9)
}

func putsManyTracked(t *testing.T, s MirrorStores) {
	t.Helper()
	var all []mirror.Tracked
	for i := range 450 {
		all = append(all, tracked(t, fmt.Sprintf("com.example/x%03d", i), "1.0.0", byte(i)))
	}
	s.put(t, "corp", all...)
	s.wantPage(t, "corp", "", 1000, all...)
}

// inServers makes a change in a transaction that has locked servers.
func (s MirrorStores) inServers(t *testing.T, servers []string, change func(ctx context.Context) error) error {
	t.Helper()
	return s.Runner.Atomically(t.Context(), func(ctx context.Context) error {
		for _, server := range servers {
			if _, err := s.Writer.Lock(ctx, name(t, server)); err != nil {
				return err
			}
		}
		return change(ctx)
	})
}

func (s MirrorStores) save(t *testing.T, server string, changes ...registrystore.Change) {
	t.Helper()
	err := s.inServers(t, []string{server}, func(ctx context.Context) error { return s.Writer.Save(ctx, changes) })
	if err != nil {
		t.Fatal(err)
	}
}

// mirroredChange returns a new version with an origin and a remote URL.
func mirroredChange(t *testing.T, server, v string, n int) registrystore.Change {
	t.Helper()
	c := published(latest(release(t, server, v, n)))
	c.Release.Origin = registry.Origin{Mirror: "corp", URL: "https://registry.example.com/x?", FetchedAt: hour(n)}
	c.Remotes = []registry.RemoteURL{registry.RemoteURL("https://" + server + "/mcp")}
	return c
}

func keepsOrigins(t *testing.T, s MirrorStores) {
	t.Helper()
	c := mirroredChange(t, "com.example/x", "1.0.0", 1)
	c.Release.StatusMessage = "@corp 1 url com.example/x active"
	s.save(t, "com.example/x", c)
	s.save(t, "com.example/y", published(latest(release(t, "com.example/y", "1.0.0", 2))))
	want := c.Release.Origin
	check := func(step string) {
		t.Helper()
		x := name(t, "com.example/x")
		one, err1 := s.Reader.Version(t.Context(), x, version(t, "1.0.0"), true)
		last, err2 := s.Reader.Latest(t.Context(), x, true)
		list, err3 := s.Reader.List(t.Context(), registrystore.Query{Limit: 10, Deleted: true})
		versions, err4 := s.Reader.Versions(t.Context(), registrystore.VersionsQuery{Name: x, Deleted: true})
		outline, err5 := s.Reader.Outline(t.Context(), x, true)
		var locked []registry.Release
		err6 := s.inServers(t, nil, func(ctx context.Context) (err error) {
			locked, err = s.Writer.Lock(ctx, x)
			return err
		})
		for i, err := range []error{err1, err2, err3, err4, err5, err6} {
			if err != nil {
				t.Fatalf("%s: read %d: %v", step, i, err)
			}
		}
		for what, got := range map[string]registry.Release{
			"Version": one.Release, "Latest": last.Release, "List": list.Records[0].Release,
			"Versions": versions.Records[0].Release,
			"Outline":  outline[0].Release, "Lock": locked[0],
		} {
			if got.Origin != want || got.StatusMessage != c.Release.StatusMessage || got.Version != c.Release.Version {
				t.Errorf("%s: %s = %+v, want the origin %+v", step, what, got, want)
			}
		}
		if list.Records[1].Origin != (registry.Origin{}) {
			t.Errorf("%s: a local server has the origin %+v", step, list.Records[1].Origin)
		}
	}
	check("a new version")
	changed := c.Release
	changed.Status, changed.UpdatedAt, changed.Origin = registry.StatusDeprecated, hour(3), registry.Origin{}
	s.save(t, "com.example/x", registrystore.Change{Release: changed})
	check("another status")
	other, err := s.Reader.Undeprecated(t.Context(), []registry.Name{name(t, "com.example/x")})
	if err != nil || len(other) != 0 {
		t.Errorf("Undeprecated = %+v, %v", other, err)
	}
	changed.Origin = registry.Origin{Mirror: "corp", URL: "https://b.example.com", FetchedAt: hour(4)}
	want = changed.Origin
	s.save(t, "com.example/x", registrystore.Change{Release: changed, Document: []byte(`{"b":1}`)})
	check("another document")
}

func adoptsServers(t *testing.T, s MirrorStores) {
	t.Helper()
	for i, server := range []string{"com.example/x", "com.example/y"} {
		s.save(t, server, mirroredChange(t, server, "1.0.0", i))
	}
	err := s.inServers(t, []string{"com.example/x"}, func(ctx context.Context) error {
		return s.Mirrored.Adopt(ctx, []registry.Name{name(t, "com.example/x")})
	})
	if err != nil {
		t.Fatal(err)
	}
	list, err := s.Reader.List(t.Context(), registrystore.Query{Limit: 10})
	if err != nil || len(list.Records) != 2 || list.Records[0].Origin != (registry.Origin{}) ||
		list.Records[1].Origin.Mirror != "corp" {
		t.Errorf("after Adopt: %+v, %v", list, err)
	}
}

// purgesServers checks that nothing of a purged server is left: its name and its remote URLs can be
// used again.
func purgesServers(t *testing.T, s MirrorStores) {
	t.Helper()
	servers := []string{"com.example/x", "com.example/y"}
	for i, server := range servers {
		first, second := mirroredChange(t, server, "1.0.0", 2*i), mirroredChange(t, server, "2.0.0", 2*i+1)
		first.Release.Latest = false
		s.save(t, server, first, second)
	}
	err := s.inServers(t, servers[:1], func(ctx context.Context) error {
		return s.Mirrored.Purge(ctx, []registry.Name{name(t, servers[0])})
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []registrystore.Query{
		{Limit: 10, Deleted: true}, {Limit: 10, Search: "example"}, {
			Limit: 10, UpdatedSince: epoch.Add(-time.Hour), Deleted: true,
		}, {Limit: 10, LatestOnly: true},
	} {
		list, err := s.Reader.List(t.Context(), q)
		if err != nil || len(list.Records) == 0 || list.Records[0].Name.String() != servers[1] {
			t.Errorf("List(%+v) = %+v, %v, want only %s", q, list, err, servers[1])
		}
	}
	if _, err := s.Reader.Version(t.Context(), name(t, servers[0]), version(t, "1.0.0"), true); !fault.Is(err,
		fault.NotFound) {
		t.Errorf("Version of a purged server returned %v, want fault.NotFound", err)
	}
	taken := mirroredChange(t, "com.example/z", "1.0.0", 7)
	taken.Remotes = []registry.RemoteURL{registry.RemoteURL("https://" + servers[0] + "/mcp")}
	s.save(t, "com.example/z", taken)
	s.save(t, servers[0], published(latest(release(t, servers[0], "1.0.0", 8))))
}

func savesManyServers(t *testing.T, s MirrorStores) {
	t.Helper()
	var servers []string
	var changes []registrystore.Change
	for i := range 30 {
		server := fmt.Sprintf("com.example/x%02d", i)
		servers, changes = append(servers, server), append(changes, mirroredChange(t, server, "1.0.0", i))
	}
	if err := s.inServers(t, servers, func(ctx context.Context) error {
		return s.Writer.Save(ctx, changes)
	}); err != nil {
		t.Fatal(err)
	}
	list, err := s.Reader.List(t.Context(), registrystore.Query{Limit: 100})
	if err != nil || len(list.Records) != len(servers) {
		t.Errorf("List has %d records, %v, want %d", len(list.Records), err, len(servers))
	}
	changes = changes[:2]
	changes[0] = mirroredChange(t, "com.example/new", "1.0.0", 50)
	changes[1] = mirroredChange(t, "com.example/x07", "1.0.0", 51)
	err = s.inServers(t, []string{"com.example/new", "com.example/x07"}, func(ctx context.Context) error {
		return s.Writer.Save(ctx, changes)
	})
	if !fault.Is(err, fault.Conflict) {
		t.Errorf("a version that exists returned %v, want fault.Conflict", err)
	}
	if _, err := s.Reader.Latest(t.Context(), name(t, "com.example/new"), true); !fault.Is(err, fault.NotFound) {
		t.Errorf("the other server of the transaction is stored: %v", err)
	}
}

// sharesRemoteURLs checks that versions of mirrors may have the remote URL of every other server,
// and keep no one from publishing it (contract R-32).
func sharesRemoteURLs(t *testing.T, s MirrorStores) {
	t.Helper()
	mirrored := func(server string, n int) registrystore.Change {
		c := mirroredChange(t, server, "1.0.0", n)
		c.Remotes = []registry.RemoteURL{address}
		return c
	}
	local := func(server string, n int) registrystore.Change {
		return published(latest(release(t, server, "1.0.0", n)), address)
	}
	refuses := func(what, server string, c registrystore.Change) {
		t.Helper()
		err := s.inServers(t, []string{server}, func(ctx context.Context) error {
			return s.Writer.Save(ctx, []registrystore.Change{c})
		})
		if !fault.Is(err, fault.Conflict) {
			t.Errorf("%s: %v, want fault.Conflict", what, err)
		}
	}
	s.save(t, "com.example/first", mirrored("com.example/first", 1))
	owner := local("com.example/owner", 2)
	s.save(t, "com.example/owner", owner)
	s.save(t, "com.example/second", mirrored("com.example/second", 3))
	refuses("another server that is published here", "com.example/other", local("com.example/other", 4))

	hidden := mirrored("com.example/second", 3)
	hidden.Document, hidden.Release.Status = nil, registry.StatusDeleted
	s.save(t, "com.example/second", hidden)
	hidden.Release.Status = registry.StatusActive
	s.save(t, "com.example/second", hidden)

	adopted := []registry.Name{name(t, "com.example/first")}
	err := s.inServers(t, []string{"com.example/first"}, func(ctx context.Context) error {
		return s.Mirrored.Adopt(ctx, adopted)
	})
	if err != nil {
		t.Fatal(err)
	}
	refuses("a server that shares the URL since its mirror was removed", "com.example/owner", owner)
}

// endsServers checks that a server that ends is local and not tracked, and that a version of it can
// be published again in the same transaction.
func endsServers(t *testing.T, s MirrorStores) {
	t.Helper()
	const server = "com.example/x"
	first, second := mirroredChange(t, server, "1.0.0", 1), mirroredChange(t, server, "2.0.0", 2)
	first.Release.Latest = false
	s.save(t, server, first, second)
	s.save(t, "com.example/y", mirroredChange(t, "com.example/y", "1.0.0", 3))
	other := tracked(t, "com.example/y", "1.0.0", 3)
	s.put(t, "corp", tracked(t, server, "1.0.0", 1), tracked(t, server, "2.0.0", 2), other)
	s.put(t, "else", tracked(t, server, "1.0.0", 1))
	again := published(latest(release(t, server, "2.0.0", 9)), address)
	err := s.inServers(t, []string{server}, func(ctx context.Context) error {
		if err := s.Mirrored.End(ctx, "corp", name(t, server), []registry.Version{version(t, "2.0.0")}); err != nil {
			return err
		}
		return s.Writer.Save(ctx, []registrystore.Change{
			state(status(first.Release, registry.StatusDeleted, "ended", 8)), again,
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	s.wantPage(t, "corp", "", 10, other)
	s.wantPage(t, "else", "", 10, tracked(t, server, "1.0.0", 1))
	list, err := s.Reader.List(t.Context(), registrystore.Query{Limit: 10, Deleted: true})
	if err != nil || len(list.Records) != 3 {
		t.Fatalf("List = %+v, %v", list, err)
	}
	ended, now := list.Records[0], list.Records[1]
	if ended.Origin != (registry.Origin{}) || ended.Status != registry.StatusDeleted ||
		now.Origin != (registry.Origin{}) ||
		!now.PublishedAt.Equal(again.Release.PublishedAt) || list.Records[2].Origin.Mirror != "corp" {
		t.Errorf("after End: %+v", list.Records)
	}
}
