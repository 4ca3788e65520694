package registrystoretest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// opened has the steps of the parts.
type opened struct{ ServerStores }

// epoch is when the first publication of the tests takes place: with
// microseconds, which must not be lost.
var epoch = time.Date(2026, 3, 4, 5, 6, 7, 123456000, time.UTC)

// hour returns n hours and n microseconds after the epoch.
func hour(n int) time.Time {
	return epoch.Add(time.Duration(n) * (time.Hour + time.Microsecond))
}

func name(t *testing.T, s string) registry.Name {
	t.Helper()
	n, err := registry.ParseName(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func version(t *testing.T, s string) registry.Version {
	t.Helper()
	v, err := registry.ParseVersion(s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// release returns an active version that was published n hours after the epoch.
func release(t *testing.T, server, v string, n int) registry.Release {
	t.Helper()
	at := hour(n)
	return registry.Release{
		Name: name(t, server), Version: version(t, v), Status: registry.StatusActive,
		StatusChangedAt: at, PublishedAt: at, UpdatedAt: at,
	}
}

func latest(r registry.Release) registry.Release {
	r.Latest = true
	return r
}

func status(r registry.Release, s registry.Status, message string, n int) registry.Release {
	r.Status, r.StatusMessage, r.StatusChangedAt, r.UpdatedAt = s, message, hour(n), hour(n)
	return r
}

// published is a release with a document of its own.
func published(r registry.Release, remotes ...registry.RemoteURL) registrystore.Change {
	document := fmt.Sprintf(`{"name":%q,"version":%q}`, r.Name, r.Version)
	return registrystore.Change{Release: r, Document: []byte(document), Remotes: remotes}
}

func state(r registry.Release) registrystore.Change { return registrystore.Change{Release: r} }

// save stores changes of one server as a use case does.
func (o opened) save(ctx context.Context, changes ...registrystore.Change) error {
	return o.saveBy(ctx, o.Writer, changes...)
}

func (o opened) saveBy(ctx context.Context, w registrystore.ServerWriter, changes ...registrystore.Change) error {
	return o.Runner.Atomically(ctx, func(ctx context.Context) error {
		if _, err := w.Lock(ctx, changes[0].Release.Name); err != nil {
			return err
		}
		return w.Save(ctx, changes)
	})
}

func (o opened) saved(t *testing.T, changes ...registrystore.Change) {
	t.Helper()
	if err := o.save(t.Context(), changes...); err != nil {
		t.Fatal(err)
	}
}

// publish stores one new version of a server as its latest, and takes the flag
// from the one that had it.
func (o opened) publish(ctx context.Context, r registry.Release, taken func([]registry.Release) error) error {
	return o.Runner.Atomically(ctx, func(ctx context.Context) error {
		before, err := o.Writer.Lock(ctx, r.Name)
		if err != nil {
			return err
		}
		if err := taken(before); err != nil {
			return err
		}
		changes := []registrystore.Change{published(latest(r))}
		for _, b := range before {
			if b.Latest {
				b.Latest = false
				changes = append(changes, state(b))
			}
		}
		return o.Writer.Save(ctx, changes)
	})
}

func (o opened) list(t *testing.T, q registrystore.Query) []registry.Record {
	t.Helper()
	return o.page(t, q).Records
}

func (o opened) page(t *testing.T, q registrystore.Query) registrystore.Page {
	t.Helper()
	if q.Limit == 0 {
		q.Limit = 1000
	}
	got, err := o.Reader.List(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// lists checks which versions a query selects, each as "name@version".
func (o opened) lists(t *testing.T, q registrystore.Query, want ...string) {
	t.Helper()
	if got := keys(o.list(t, q)); !slices.Equal(got, want) {
		t.Errorf("%+v selects\n%q, want\n%q", q, got, want)
	}
}

func keys(records []registry.Record) []string {
	all := make([]string, 0, len(records))
	for _, r := range records {
		all = append(all, r.Name.String()+"@"+r.Version.String())
	}
	return all
}

func (o opened) versions(t *testing.T, server string, deleted bool) []registry.Record {
	t.Helper()
	got := o.versionsPage(t, registrystore.VersionsQuery{Name: name(t, server), Deleted: deleted})
	if got.More {
		t.Errorf("there are more than all versions of %s", server)
	}
	return got.Records
}

func (o opened) versionsPage(t *testing.T, q registrystore.VersionsQuery) registrystore.Page {
	t.Helper()
	got, err := o.Reader.Versions(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func (o opened) version(t *testing.T, r registry.Release) registry.Record {
	t.Helper()
	got, err := o.Reader.Version(t.Context(), r.Name, r.Version, true)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// locked returns what Lock returns.
func (o opened) locked(t *testing.T, server string) []registry.Release {
	t.Helper()
	var got []registry.Release
	err := o.Runner.Atomically(t.Context(), func(ctx context.Context) (err error) {
		got, err = o.Writer.Lock(ctx, name(t, server))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}
