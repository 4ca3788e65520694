package registryapi_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/readcache"
	"github.com/tollgate-dev/tollgate/adapters/rest/registryapi"
	"github.com/tollgate-dev/tollgate/adapters/rest/resttest"
	"github.com/tollgate-dev/tollgate/core/page"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/allowlist"
	"github.com/tollgate-dev/tollgate/core/registry/browsing"
	"github.com/tollgate-dev/tollgate/core/registry/view"
	"github.com/tollgate-dev/tollgate/core/registry/viewing"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

// memoryServers are servers in memory. They keep the last query, and fail if err is set.
type memoryServers struct {
	*fakedb.Servers
	db    *fakedb.Database
	query registrystore.Query
	reads int
	err   error
}

// newServers returns servers with the records.
func newServers(t testing.TB, records ...registry.Record) *memoryServers {
	t.Helper()
	db := fakedb.New()
	s := &memoryServers{Servers: fakedb.NewServers(db, false), db: db}
	s.save(t, records...)
	return s
}

func (s *memoryServers) save(t testing.TB, records ...registry.Record) {
	t.Helper()
	err := s.db.Atomically(t.Context(), func(ctx context.Context) error {
		for _, r := range records {
			if err := s.Save(ctx, []registrystore.Change{{Release: r.Release, Document: r.Document}}); err != nil {
				return err
			}
		}
		return nil
	})
	must.Succeed(t, err)
}

func (s *memoryServers) List(ctx context.Context, q registrystore.Query) (registrystore.Page, error) {
	s.query = q
	if s.reads++; s.err != nil {
		return registrystore.Page{}, s.err
	}
	return s.Servers.List(ctx, q)
}

func (s *memoryServers) Versions(ctx context.Context, q registrystore.VersionsQuery) (registrystore.Page, error) {
	if s.reads++; s.err != nil {
		return registrystore.Page{}, s.err
	}
	return s.Servers.Versions(ctx, q)
}

func (s *memoryServers) Version(
	ctx context.Context, n registry.Name, v registry.Version, deleted bool,
) (registry.Record, error) {
	if s.reads++; s.err != nil {
		return registry.Record{}, s.err
	}
	return s.Servers.Version(ctx, n, v, deleted)
}

func (s *memoryServers) Latest(ctx context.Context, n registry.Name, deleted bool) (registry.Record, error) {
	if s.reads++; s.err != nil {
		return registry.Record{}, s.err
	}
	return s.Servers.Latest(ctx, n, deleted)
}

// newViews returns the public view "team" and the view "inner", which needs the token "secret".
// Both have the servers below com.example.
func newViews(t testing.TB) *fakedb.Views {
	t.Helper()
	views := fakedb.NewViews(fakedb.New())
	for _, d := range []view.Draft{
		{Name: "team", Include: []string{"com.example/*"}}, {
			Name: "inner", Include: []string{"com.example/*"}, Access: "token",
		},
	} {
		v, err := view.New(d)
		must.Succeed(t, err)
		must.Succeed(t, views.Put(t.Context(), v))
	}
	if err := views.AddToken(t.Context(), view.Token{
		View: "inner", Name: "one", Hash: view.Secret("secret").Hash(),
	}); err != nil {
		t.Fatal(err)
	}
	return views
}

// catalogue finds the words of a search in documents.
type catalogue struct {
	registrystore.Catalogue
	servers registrystore.SnapshotReader
}

func (catalogue) Progress(context.Context) (p registrystore.Progress, err error) { return p, nil }

func (c catalogue) Find(ctx context.Context, s registrystore.Search) (f registrystore.Finding, err error) {
	page, err := c.servers.List(ctx, registrystore.Query{LatestOnly: true, Limit: 100})
	for _, r := range page.Records {
		text, name := strings.ToLower(string(r.Document)), r.Name.String()
		if slices.ContainsFunc(s.Words, func(word string) bool { return !strings.Contains(text, word) }) ||
			s.Names != nil && !slices.ContainsFunc(s.Names, func(n registry.NameRange) bool { return n.Contains(name) }) {
			continue
		}
		if f.Total++; f.Total > s.Offset && len(f.Servers) < s.Limit {
			f.Servers = append(f.Servers, registrystore.FoundServer{
				Release: r.Release, Summary: registry.Summary{Description: "of the catalogue"},
			})
		}
	}
	return f, err
}

// newReads returns the use cases that read the servers and views.
func newReads(servers registrystore.SnapshotReader, views registrystore.Views) registryapi.Reads {
	return registryapi.Reads{
		Browser: browsing.New(servers, page.NewSealer([]byte(strings.Repeat("k", 32)))),
		Finder:  browsing.NewFinder(browsing.FinderPorts{Catalogue: catalogue{servers: servers}}),
		Lists:   allowlist.NewSource(servers),
		Tools:   newTools(fakedb.New()),
		Gate:    newGate(viewing.Config{}, views),
	}
}

func newTools(db *fakedb.Database) *browsing.Tools {
	return browsing.NewTools(browsing.ToolsPorts{
		Lists: fakedb.NewToolLists(db), Watches: fakedb.NewToolWatches(db), Grants: fakedb.NewGrants(db),
	})
}

func newGate(c viewing.Config, views registrystore.Views) *viewing.Gate {
	return viewing.NewGate(c, viewing.GatePorts{Views: views, Changes: noChanges{}, Clock: clocktest.NewManual(now)})
}

// serveAs starts a listener whose callers an authority knows.
func serveAs(t *testing.T, who authority.Authority, cfg registryapi.Config, r registryapi.Reads) string {
	t.Helper()
	at := clocktest.NewManual(time.Unix(1_800_000_000, 0))
	api, end := registryapi.New(cfg, who, r, &writerStub{}, readcache.Ports{Changes: noChanges{}, Clock: at})
	t.Cleanup(end)
	return resttest.Serve(t,
		rest.New(resttest.Config(), rest.Ports{Parts: []rest.Part{api}, Throttle: unlimited{}, Clock: at, Log: discardLog()}))
}

// serve starts a listener that has only the registry with the servers, and returns its URL.
func serve(t *testing.T, cfg registryapi.Config, servers registrystore.SnapshotReader, w registryapi.Writer) string {
	t.Helper()
	return serveReads(t, cfg, newReads(servers, newViews(t)), w, discardLog())
}

func serveReads(
	t *testing.T, cfg registryapi.Config, r registryapi.Reads, w registryapi.Writer, log *logrus.Entry,
) string {
	t.Helper()
	at := clocktest.NewManual(time.Unix(1_800_000_000, 0))
	api, end := registryapi.New(cfg, anybody{}, r, w, readcache.Ports{Changes: noChanges{}, Clock: at})
	t.Cleanup(end)
	return resttest.Serve(t,
		rest.New(resttest.Config(), rest.Ports{Parts: []rest.Part{api}, Throttle: unlimited{}, Clock: at, Log: log}))
}

// noChanges is a registry that does not change.
type noChanges struct{}

func (noChanges) Revision(context.Context) (registrystore.Revision, error) {
	return registrystore.Revision{}, nil
}
func (noChanges) ValidFor() time.Duration                  { return time.Second }
func (noChanges) AwayAfter() time.Duration                 { return time.Second }
func (noChanges) Hint() uint64                             { return 0 }
func (noChanges) Removals(uint64) ([]string, uint64, bool) { return nil, 0, true }
