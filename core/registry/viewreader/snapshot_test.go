package viewreader_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/view"
	"github.com/tollgate-dev/tollgate/core/registry/viewreader"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

// restlessStore is a store with a server of three versions, which changes after every read that is
// not in a snapshot: the greatest version is deprecated, and then active again.
type restlessStore struct {
	*fakedb.Servers

	t  *testing.T
	db *fakedb.Database
	at time.Time
}

// still marks the context of a snapshot.
type still struct{}

func newRestlessStore(t *testing.T) *restlessStore {
	t.Helper()
	db := fakedb.New()
	s := &restlessStore{Servers: fakedb.NewServers(db, false), t: t, db: db, at: epoch}
	s.change(func(l *registry.Lineage) error {
		for _, text := range []string{"1.0.0", "2.0.0", "3.0.0"} {
			version, err := registry.ParseVersion(text)
			if err != nil {
				return err
			}
			s.at = s.at.Add(time.Minute)
			if _, err := l.Publish(version, s.at); err != nil {
				return err
			}
		}
		return nil
	})
	return s
}

func (s *restlessStore) name() registry.Name {
	s.t.Helper()
	name, err := registry.ParseName("com.example/a")
	must.Succeed(s.t, err)
	return name
}

// change changes the server.
func (s *restlessStore) change(how func(*registry.Lineage) error) {
	s.t.Helper()
	err := s.db.Atomically(context.Background(), func(ctx context.Context) error {
		releases, err := s.Lock(ctx, s.name())
		if err != nil {
			return err
		}
		l := registry.NewLineage(s.name(), releases)
		if err := how(l); err != nil {
			return err
		}
		var changes []registrystore.Change
		for _, r := range l.Changes() {
			changes = append(changes, registrystore.Change{Release: r, Document: []byte("{}")})
		}
		return s.Save(ctx, changes)
	})
	must.Succeed(s.t, err)
}

// turn gives the greatest version the other status.
func (s *restlessStore) turn(ctx context.Context) {
	s.t.Helper()
	if ctx.Value(still{}) != nil {
		return
	}
	greatest, err := s.Servers.Latest(ctx, s.name(), true)
	must.Succeed(s.t, err)
	next := registry.StatusDeprecated
	if greatest.Status == next {
		next = registry.StatusActive
	}
	update, err := registry.NewStatusUpdate(next, "")
	must.Succeed(s.t, err)
	s.at = s.at.Add(time.Minute)
	s.change(func(l *registry.Lineage) error {
		_, err := l.SetStatus(greatest.Version, update, s.at)
		return err
	})
}

func (s *restlessStore) Snapshot(ctx context.Context, do func(ctx context.Context) error) error {
	return s.Servers.Snapshot(ctx, func(ctx context.Context) error { return do(context.WithValue(ctx, still{}, true)) })
}

func (s *restlessStore) List(ctx context.Context, q registrystore.Query) (registrystore.Page, error) {
	defer s.turn(ctx)
	return s.Servers.List(ctx, q)
}

func (s *restlessStore) Versions(ctx context.Context, q registrystore.VersionsQuery) (registrystore.Page, error) {
	defer s.turn(ctx)
	return s.Servers.Versions(ctx, q)
}

func (s *restlessStore) Outline(ctx context.Context, name registry.Name, deleted bool) ([]registry.Edition, error) {
	defer s.turn(ctx)
	return s.Servers.Outline(ctx, name, deleted)
}

func (s *restlessStore) Latest(ctx context.Context, name registry.Name, deleted bool) (registry.Record, error) {
	defer s.turn(ctx)
	return s.Servers.Latest(ctx, name, deleted)
}

func (s *restlessStore) Undeprecated(ctx context.Context, names []registry.Name) ([]registry.Release, error) {
	defer s.turn(ctx)
	return s.Servers.Undeprecated(ctx, names)
}

// TestChangesBetweenReads changes the server between all reads of the store. Each result has
// exactly one latest version.
func TestChangesBetweenReads(t *testing.T) {
	t.Parallel()
	v, err := view.New(view.Draft{Name: "team", Include: []string{"*"}, Deprecated: "hide"})
	must.Succeed(t, err)
	reads := map[string]func(r *viewreader.Reader, name registry.Name) ([]registry.Release, error){
		"Outline": func(r *viewreader.Reader, name registry.Name) (all []registry.Release, err error) {
			editions, err := r.Outline(t.Context(), name, false)
			for _, e := range editions {
				all = append(all, e.Release)
			}
			return all, err
		},
		"Versions": func(r *viewreader.Reader, name registry.Name) ([]registry.Release, error) {
			p, err := r.Versions(t.Context(), registrystore.VersionsQuery{Name: name})
			return releasesIn(p), err
		},
		"Latest": func(r *viewreader.Reader, name registry.Name) ([]registry.Release, error) {
			record, err := r.Latest(t.Context(), name, false)
			return []registry.Release{record.Release}, err
		},
	}
	for _, q := range []registrystore.Query{
		{}, {LatestOnly: true}, {UpdatedSince: epoch}, {Deleted: true, UpdatedSince: epoch}, {
			LatestOnly: true, UpdatedSince: epoch,
		},
	} {
		q.Limit = 10
		reads[fmt.Sprintf("List %+v", q)] = func(r *viewreader.Reader, _ registry.Name) ([]registry.Release, error) {
			p, err := r.List(t.Context(), q)
			return releasesIn(p), err
		}
	}
	for what, read := range reads {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := newRestlessStore(t)
			for range 2 { // with either status
				s.turn(t.Context())
				releases, err := read(viewreader.New(s, v), s.name())
				latest := 0
				for _, r := range releases {
					if r.Latest {
						latest++
					}
				}
				if err != nil || latest != 1 {
					t.Errorf("%d latest versions in %q, %v", latest, texts(releases), err)
				}
			}
		})
	}
}

func releasesIn(p registrystore.Page) (all []registry.Release) {
	for _, r := range p.Records {
		all = append(all, r.Release)
	}
	return all
}
