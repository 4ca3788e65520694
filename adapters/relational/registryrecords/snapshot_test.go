package registryrecords_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/relational/registryrecords"
	"github.com/tollgate-dev/tollgate/adapters/relational/relationaltest"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/view"
	"github.com/tollgate-dev/tollgate/core/registry/viewreader"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/test/must"
)

// turning is a server with three versions, the greatest of which is deprecated and active in turn.
type turning struct {
	db       *relationaltest.Database
	servers  *registryrecords.Servers
	name     registry.Name
	versions []registry.Version
}

func newTurning(t *testing.T, db *relationaltest.Database) *turning {
	t.Helper()
	name, err := registry.ParseName("com.example/a")
	must.Succeed(t, err)
	s := &turning{db: db, servers: registryrecords.NewServers(db.DB, registryrecords.Config{}), name: name}
	for _, text := range []string{"1.0.0", "2.0.0", "3.0.0"} {
		version, err := registry.ParseVersion(text)
		must.Succeed(t, err)
		s.versions = append(s.versions, version)
	}
	l := registry.NewLineage(name, nil)
	for i, version := range s.versions {
		if _, err := l.Publish(version, epoch.Add(time.Duration(i)*time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	var changes []registrystore.Change
	for _, r := range l.Changes() {
		changes = append(changes, registrystore.Change{Release: r, Document: []byte("{}")})
	}
	must.Succeed(t, saveLocked(t, db, s.servers, changes...))
	return s
}

// turn gives the greatest version another status.
func (s *turning) turn(ctx context.Context, status registry.Status) error {
	update, err := registry.NewStatusUpdate(status, "")
	if err != nil {
		return err
	}
	return s.db.Atomically(ctx, func(ctx context.Context) error {
		releases, err := s.servers.Lock(ctx, s.name)
		if err != nil {
			return err
		}
		l := registry.NewLineage(s.name, releases)
		if _, err := l.SetStatus(s.versions[2], update, epoch.Add(time.Hour)); err != nil {
			return err
		}
		var changes []registrystore.Change
		for _, r := range l.Changes() {
			changes = append(changes, registrystore.Change{Release: r})
		}
		return s.servers.Save(ctx, changes)
	})
}

// TestSnapshotDoesNotChange changes a server in the middle of a snapshot, which does not show it,
// and wants no change within a snapshot.
func TestSnapshotDoesNotChange(t *testing.T) {
	relationaltest.InEach(t, func(t *testing.T, db *relationaltest.Database) {
		s := newTurning(t, db)
		status := func(ctx context.Context) registry.Status {
			t.Helper()
			r, err := s.servers.Latest(ctx, s.name, false)
			must.Succeed(t, err)
			return r.Status
		}
		err := s.servers.Snapshot(t.Context(), func(ctx context.Context) error {
			if got := status(ctx); got != registry.StatusActive {
				t.Errorf("before the change, the version is %s", got)
			}
			if err := s.turn(t.Context(), registry.StatusDeprecated); err != nil {
				return err
			}
			if got := status(ctx); got != registry.StatusActive {
				t.Errorf("after the change, a version of the snapshot is %s", got)
			}
			found, err := s.servers.Undeprecated(ctx, []registry.Name{s.name})
			if err != nil || len(found) != 0 {
				t.Errorf("in the snapshot %d versions are not deprecated beside a deprecated one, %v",
					len(found), err)
			}
			if err := s.turn(ctx, registry.StatusActive); err == nil {
				t.Error("a snapshot changes the server")
			}
			return s.servers.Snapshot(ctx, func(ctx context.Context) error { // joins it
				_, err := s.servers.List(ctx, registrystore.Query{Limit: 10, Search: "example"})
				return err
			})
		})
		must.Succeed(t, err)
		if got := status(t.Context()); got != registry.StatusDeprecated {
			t.Errorf("after the snapshot, the version is %s", got)
		}
	})
}

// readsBesideWrites is the number of reads of each kind next to a writer.
const readsBesideWrites = 500

// TestViewBesideAWriter reads a view that hides deprecated versions while a version is deprecated
// and active in turn. Exactly one version in each result is the latest (contract C-32).
func TestViewBesideAWriter(t *testing.T) {
	v, err := view.New(view.Draft{Name: "team", Deprecated: "hide"})
	must.Succeed(t, err)
	relationaltest.InEach(t, func(t *testing.T, db *relationaltest.Database) {
		s := newTurning(t, db)
		reader := viewreader.New(s.servers, v)
		ctx, cancel := context.WithCancel(t.Context())
		var writer, readers sync.WaitGroup
		writer.Go(func() {
			for next := registry.StatusDeprecated; ctx.Err() == nil; {
				if err := s.turn(ctx, next); err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
				if next == registry.StatusDeprecated {
					next = registry.StatusActive
				} else {
					next = registry.StatusDeprecated
				}
			}
		})
		for what, read := range map[string]func() (registrystore.Page, error){
			"Versions": func() (registrystore.Page, error) {
				return reader.Versions(ctx, registrystore.VersionsQuery{Name: s.name})
			},
			"List": func() (registrystore.Page, error) { return reader.List(ctx, registrystore.Query{Limit: 10}) },
			"List of latest": func() (registrystore.Page, error) {
				return reader.List(ctx, registrystore.Query{Limit: 10, LatestOnly: true})
			},
			"Latest": func() (registrystore.Page, error) {
				r, err := reader.Latest(ctx, s.name, false)
				return registrystore.Page{Records: []registry.Record{r}}, err
			},
		} {
			readers.Go(func() {
				for range readsBesideWrites {
					p, err := read()
					latest := slices.DeleteFunc(p.Records, func(r registry.Record) bool { return !r.Latest })
					if err != nil || len(latest) != 1 {
						t.Errorf("%s has %d latest versions, %v", what, len(latest), err)
						return
					}
				}
			})
		}
		readers.Wait()
		cancel()
		writer.Wait()
	})
}
