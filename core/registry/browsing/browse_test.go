package browsing_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/page"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/browsing"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

var (
	epoch = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	key   = []byte("0123456789abcdef0123456789abcdef")
)

// fixture is a registry in memory, its versions published a minute apart.
type fixture struct {
	db      *fakedb.Database
	servers *fakedb.Servers
	now     time.Time
}

func newFixture() *fixture {
	db := fakedb.New()
	return &fixture{db: db, servers: fakedb.NewServers(db, false), now: epoch}
}

func (s *fixture) browser() *browsing.Browser { return browsing.New(s.servers, page.NewSealer(key)) }

// publish publishes name@version entries; a "-" before one deletes it afterwards.
func (s *fixture) publish(t testing.TB, entries ...string) *fixture {
	t.Helper()
	for _, e := range entries {
		e, deleted := strings.CutPrefix(e, "-")
		n, v, _ := strings.Cut(e, "@")
		name, err := registry.ParseName(n)
		must.Succeed(t, err)
		version, err := registry.ParseVersion(v)
		must.Succeed(t, err)
		s.change(t, name, func(l *registry.Lineage) error {
			if _, err := l.Publish(version, s.now); err != nil || !deleted {
				return err
			}
			_, err := l.Delete(version, s.now)
			return err
		})
	}
	return s
}

func (s *fixture) change(t testing.TB, name registry.Name, decide func(*registry.Lineage) error) {
	t.Helper()
	s.changeTo(t, name, []byte("{}"), decide)
}

// changeTo gives all versions that are changed a document.
func (s *fixture) changeTo(t testing.TB, name registry.Name, document []byte, decide func(*registry.Lineage) error) {
	t.Helper()
	s.now = s.now.Add(time.Minute)
	err := s.db.Atomically(context.Background(), func(ctx context.Context) error {
		releases, err := s.servers.Lock(ctx, name)
		if err != nil {
			return err
		}
		l := registry.NewLineage(name, releases)
		if err := decide(l); err != nil {
			return err
		}
		var changes []registrystore.Change
		for _, r := range l.Changes() {
			changes = append(changes, registrystore.Change{Release: r, Document: document})
		}
		return s.servers.Save(ctx, changes)
	})
	must.Succeed(t, err)
}

func ids(records []registry.Record) []string {
	all := make([]string, 0, len(records))
	for _, r := range records {
		all = append(all, r.Name.String()+"@"+r.Version.String())
	}
	return all
}

func newExample(t testing.TB) *fixture {
	t.Helper()
	return newFixture().publish(t, "com.b/two@1.0.0", "com.a/One_x@1.0.0", "com.a/One_x@2.0.0", "-com.a/One_x@3.0.0",
		"-com.c/gone@1.0.0", "com.b/two@draft")
}

func TestList(t *testing.T) {
	t.Parallel()
	since := func(minutes int) string { return epoch.Add(time.Duration(minutes) * time.Minute).Format(time.RFC3339) }
	cases := map[string]struct {
		query browsing.Query
		want  []string
	}{
		"all": {
			browsing.Query{}, []string{"com.a/One_x@1.0.0", "com.a/One_x@2.0.0", "com.b/two@1.0.0", "com.b/two@draft"},
		},
		"with deleted": {
			browsing.Query{IncludeDeleted: "true"}, []string{
				"com.a/One_x@1.0.0", "com.a/One_x@2.0.0", "com.a/One_x@3.0.0", "com.b/two@1.0.0", "com.b/two@draft",
				"com.c/gone@1.0.0",
			},
		},
		"without deleted":     {browsing.Query{IncludeDeleted: "false", Version: "3.0.0"}, nil},
		"search in any case":  {browsing.Query{Search: "ONE"}, []string{"com.a/One_x@1.0.0", "com.a/One_x@2.0.0"}},
		"underscore is plain": {browsing.Query{Search: "n_"}, nil},
		"percent is plain":    {browsing.Query{Search: "%"}, nil},
		"latest":              {browsing.Query{Version: "latest"}, []string{"com.a/One_x@2.0.0", "com.b/two@1.0.0"}},
		"latest with deleted": {
			browsing.Query{Version: "latest", IncludeDeleted: "1"}, []string{
				"com.a/One_x@2.0.0", "com.b/two@1.0.0", "com.c/gone@1.0.0",
			},
		},
		"exact version":           {browsing.Query{Version: "1.0.0"}, []string{"com.a/One_x@1.0.0", "com.b/two@1.0.0"}},
		"version in another case": {browsing.Query{Version: "Latest"}, nil},
		"a range as version":      {browsing.Query{Version: "^1.0.0"}, nil},
		"updated since": {
			browsing.Query{UpdatedSince: since(4)}, []string{
				"com.a/One_x@2.0.0", "com.a/One_x@3.0.0", "com.b/two@draft", "com.c/gone@1.0.0",
			},
		},
		"updated strictly after": {browsing.Query{UpdatedSince: since(6)}, nil},
		"since with deleted": {
			browsing.Query{UpdatedSince: since(5), IncludeDeleted: "true"}, []string{
				"com.b/two@draft", "com.c/gone@1.0.0",
			},
		},
		"since, lower case": {
			browsing.Query{UpdatedSince: strings.ToLower(since(5))}, []string{"com.b/two@draft", "com.c/gone@1.0.0"},
		},
		"since, in another zone": {
			browsing.Query{UpdatedSince: "2026-11-21T14:05:00.000+02:00"}, []string{
				"com.b/two@draft", "com.c/gone@1.0.0",
			},
		},
		"since, below a microsecond": {
			browsing.Query{UpdatedSince: "2026-11-21T12:05:59.9999999Z"}, []string{"com.b/two@draft"},
		},
		"search longer than names": {browsing.Query{Search: strings.Repeat("o", 100_000)}, nil},
		"search beyond ASCII":      {browsing.Query{Search: "é"}, nil},
	}
	b := newExample(t).browser()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := b.List(t.Context(), c.query)
			if err != nil || !slices.Equal(ids(got.Records), c.want) || got.NextCursor != "" {
				t.Errorf("List(%+v) = %v, next %q, %v, want %v", c.query, ids(got.Records), got.NextCursor, err, c.want)
			}
		})
	}
}

// recordingStore is a store that keeps the last query.
type recordingStore struct {
	registrystore.SnapshotReader
	query registrystore.Query
}

func (a *recordingStore) List(_ context.Context, q registrystore.Query) (registrystore.Page, error) {
	a.query = q
	return registrystore.Page{}, nil
}

// TestImpossibleSearch wants no query to the store for a search that no name can contain. Stores
// need not agree on the lower case of a Kelvin sign.
func TestImpossibleSearch(t *testing.T) {
	t.Parallel()
	store := &recordingStore{query: registrystore.Query{Search: "nothing yet"}}
	b := browsing.New(store, page.NewSealer(key))
	for _, search := range []string{"wor\u212a", "two%", "a b", "com.a/two/", strings.Repeat("o", 201)} {
		if p, err := b.List(t.Context(), browsing.Query{Search: search}); err != nil || len(p.Records) > 0 ||
			store.query.Search != "nothing yet" {
			t.Errorf("%q: %v, %v, and the store is asked for %q", search, ids(p.Records), err, store.query.Search)
		}
	}
}

// TestPagesThatAStoreEndsEarly wants a cursor after the end of the page of the store, also for a
// page without records.
func TestPagesThatAStoreEndsEarly(t *testing.T) {
	t.Parallel()
	store := &endingEarly{}
	b := browsing.New(store, page.NewSealer(key))
	p, err := b.List(t.Context(), browsing.Query{Search: "late"})
	if err != nil || len(p.Records) > 0 || p.NextCursor == "" {
		t.Fatalf("%v, %q, %v, want no records and a cursor", p.Records, p.NextCursor, err)
	}
	if p, err = b.List(t.Context(), browsing.Query{Cursor: p.NextCursor}); err != nil || p.NextCursor != "" {
		t.Errorf("the next page has the cursor %q, %v", p.NextCursor, err)
	}
	if q := store.query; q.Search != "late" || q.AfterName != "com.example/m" || q.AfterVersion != "1.0.0" {
		t.Errorf("the store is asked for %+v", q)
	}
}

// endingEarly is a store whose first page has no record.
type endingEarly struct{ recordingStore }

func (e *endingEarly) List(_ context.Context, q registrystore.Query) (registrystore.Page, error) {
	e.query = q
	if q.AfterName == "" {
		return registrystore.Page{More: true, EndName: "com.example/m", EndVersion: "1.0.0"}, nil
	}
	return registrystore.Page{}, nil
}

// TestFarTimesStayNearForStores wants no query with a time that a store may not support, and no
// time that means no filter.
func TestFarTimesStayNearForStores(t *testing.T) {
	t.Parallel()
	for _, since := range []string{
		"0000-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "0001-01-01T00:00:00+23:59", "1969-12-31T23:59:59Z",
		"9999-12-31T23:59:59Z", "9999-12-31T23:59:59-23:59",
	} {
		store := &recordingStore{}
		if _, err := browsing.New(store, page.NewSealer(key)).List(t.Context(), browsing.Query{
			UpdatedSince: since,
		}); err != nil {
			t.Fatalf("%s: %v", since, err)
		}
		if got := store.query.UpdatedSince; got.Year() < 1969 || got.Year() > 9999 ||
			(got.Year() == 1969) == strings.HasPrefix(since, "9") {
			t.Errorf("since %s the store is asked for %v", since, got)
		}
	}
}

// TestBadParameters: the message begins with the name of the parameter.
func TestBadParameters(t *testing.T) {
	t.Parallel()
	b := newExample(t).browser()
	for _, c := range []struct {
		names string
		query browsing.Query
	}{
		{"limit", browsing.Query{Limit: "0"}},
		{"limit", browsing.Query{Limit: "101"}},
		{"limit", browsing.Query{Limit: "-1"}},
		{"limit", browsing.Query{Limit: "ten"}},
		{"limit", browsing.Query{Limit: "1.5"}},
		{"limit", browsing.Query{Limit: "99999999999999999999"}},
		{"limit", browsing.Query{Limit: "0", Search: strings.Repeat("x", 300)}},
		{"include_deleted", browsing.Query{IncludeDeleted: "yes"}},
		{"include_deleted", browsing.Query{IncludeDeleted: "false", UpdatedSince: "2026-11-21T12:00:00Z"}},
		{"updated_since", browsing.Query{UpdatedSince: "2026-11-21"}},
		{"updated_since", browsing.Query{UpdatedSince: "2026-11-21 12:00:00Z"}},
		{"updated_since", browsing.Query{UpdatedSince: "2026-11-21T12:00:00"}},
		{"updated_since", browsing.Query{UpdatedSince: "2026-11-21T12:00:00 02:00"}},
		{"updated_since", browsing.Query{UpdatedSince: "2026-02-30T12:00:00Z"}},
		{"updated_since", browsing.Query{UpdatedSince: "2026-11-21T1:00:00Z"}},
		{"updated_since", browsing.Query{UpdatedSince: "2026-11-21T12:00:00,5Z"}},
		{"updated_since", browsing.Query{UpdatedSince: "2026-11-21T12:00:00+24:00"}},
		{"updated_since", browsing.Query{UpdatedSince: "1790000000"}},
		{"search", browsing.Query{Search: "a\x00"}},
		{"search", browsing.Query{Search: "\xff"}},
		{"version", browsing.Query{Version: "1\x00"}},
		{"cursor", browsing.Query{Cursor: "2"}},
		{"cursor", browsing.Query{Cursor: "!!"}},
		{"cursor", browsing.Query{Cursor: strings.Repeat("A", 100_000)}},
		{"cursor", browsing.Query{Cursor: page.NewSealer(key).Seal([]byte("another content"))}},
		{"cursor", browsing.Query{Cursor: page.NewSealer(key).Seal([]byte("1\x00\x00soon\x00\x00false\x00a/b\x001"))}},
		{
			"cursor", browsing.Query{
				Cursor: page.NewSealer([]byte("another key")).Seal([]byte("1\x00\x00\x00\x00false\x00a/b\x001")),
			},
		},
	} {
		_, err := b.List(t.Context(), c.query)
		if !fault.Is(err, fault.Invalid) || !strings.HasPrefix(err.Error(), c.names+" ") {
			t.Errorf("List(%.80v) = %v, want a fault that names %s", c.query, err, c.names)
		}
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	s := newFixture()
	for i := range 101 {
		s.publish(t, fmt.Sprintf("com.example/s%03d@1.0.0", i))
	}
	for limit, want := range map[string]int{"": 30, "1": 1, "100": 100} {
		got, err := s.browser().List(t.Context(), browsing.Query{Limit: limit})
		if err != nil || len(got.Records) != want || got.NextCursor == "" {
			t.Errorf("limit %q: %d records, next %q, %v, want %d and a next page", limit, len(got.Records),
				got.NextCursor, err, want)
		}
	}
}

func TestCursorCarriesItsFilters(t *testing.T) {
	t.Parallel()
	b := newFixture().publish(t, "com.a/x@1.0.0", "-com.a/x@2.0.0", "com.a/y@1.0.0", "com.b/x@1.0.0").browser()
	made := browsing.Query{Search: "COM.A", UpdatedSince: "2026-11-21T12:00:00Z", Version: "1.0.0", Limit: "1"}
	first, err := b.List(t.Context(), made)
	if err != nil || first.NextCursor == "" {
		t.Fatalf("List = %+v, %v, want a next page", first, err)
	}
	cursor := first.NextCursor
	for name, q := range map[string]browsing.Query{
		"alone": {},
		"with the same": {
			Search: "COM.A", UpdatedSince: "2026-11-21T13:00:00+01:00", Version: "1.0.0", IncludeDeleted: "true",
		},
		"with another limit":   {Limit: "100"},
		"with one of the same": {Version: "1.0.0"},
	} {
		q.Cursor = cursor
		got, err := b.List(t.Context(), q)
		if err != nil || !slices.Equal(ids(got.Records), []string{"com.a/y@1.0.0"}) {
			t.Errorf("%s: %v, %v, want com.a/y@1.0.0", name, ids(got.Records), err)
		}
	}
	for names, q := range map[string]browsing.Query{
		"search":          {Search: "com.b"},
		"version":         {Version: "latest"},
		"updated_since":   {UpdatedSince: "2026-11-21T12:00:01Z"},
		"include_deleted": {IncludeDeleted: "false"},
	} {
		q.Cursor = cursor
		if _, err := b.List(t.Context(), q); !fault.Is(err, fault.Invalid) ||
			!strings.HasPrefix(err.Error(), names+" ") {
			t.Errorf("another %s beside the cursor: %v, want a fault that names it", names, err)
		}
	}
	if _, err := b.List(t.Context(), browsing.Query{Cursor: changeMiddle(cursor)}); !fault.Is(err, fault.Invalid) {
		t.Errorf("a changed cursor: %v, want a fault of kind Invalid", err)
	}
	plain, err := b.List(t.Context(), browsing.Query{Limit: "1"})
	must.Succeed(t, err)
	for names, q := range map[string]browsing.Query{
		"updated_since":   {UpdatedSince: "2026-11-21T12:00:00Z"},
		"include_deleted": {IncludeDeleted: "true"},
		"search":          {Search: "a"},
	} {
		q.Cursor = plain.NextCursor
		if _, err := b.List(t.Context(), q); !fault.Is(err, fault.Invalid) ||
			!strings.HasPrefix(err.Error(), names+" ") {
			t.Errorf("%s beside a cursor without it: %v, want a fault that names it", names, err)
		}
	}
}

func TestLongestCursorOpens(t *testing.T) {
	t.Parallel()
	name := "com.example/" + strings.Repeat("a", 187)
	version := strings.Repeat("日", 255)
	b := newFixture().publish(t, name+"a@"+version, name+"b@"+version).browser()
	q := browsing.Query{Search: name, Version: version, UpdatedSince: "2026-11-21T12:00:00Z", Limit: "1"}
	got, err := b.List(t.Context(), q)
	if err != nil || got.NextCursor == "" {
		t.Fatalf("List = %v, %v, want a next page", ids(got.Records), err)
	}
	q.Cursor = got.NextCursor
	if next, err := b.List(t.Context(), q); err != nil || len(next.Records) != 1 {
		t.Errorf("the next page = %v, %v, want one record", ids(next.Records), err)
	}
}

// changeMiddle changes one character in the middle.
func changeMiddle(s string) string {
	b := []byte(s)
	if i := len(b) / 2; b[i] == 'A' {
		b[i] = 'B'
	} else {
		b[i] = 'A'
	}
	return string(b)
}

// TestPagesAddUp: pages of any size hold what one page would, each once and in the same order.
func TestPagesAddUp(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		entries := rapid.SliceOfNDistinct(rapid.StringMatching(`-?com\.[ab]/[a-c]@[0-2]\.0\.0`), 0, 12,
			func(s string) string {
				return strings.TrimPrefix(s, "-")
			}).Draw(rt, "entries")
		b := newFixture().publish(t, entries...).browser()
		q := browsing.Query{
			IncludeDeleted: rapid.SampledFrom([]string{"", "true"}).Draw(rt, "deleted"),
			Search:         rapid.SampledFrom([]string{"", "com.a"}).Draw(rt, "search"),
		}
		whole, err := b.List(t.Context(), q)
		must.Succeed(rt, err)
		var pieces []string
		for pages := 0; pages == 0 || q.Cursor != ""; pages++ {
			q.Limit = fmt.Sprint(rapid.IntRange(1, 5).Draw(rt, "limit"))
			p, err := b.List(t.Context(), q)
			if err != nil || pages > 12 || q.Cursor != "" && len(p.Records) == 0 {
				rt.Fatalf("page %d = %v, %v", pages, ids(p.Records), err)
			}
			pieces = append(pieces, ids(p.Records)...)
			q.Cursor = p.NextCursor
		}
		if !slices.Equal(pieces, ids(whole.Records)) {
			rt.Fatalf("pages hold %v, one page %v", pieces, ids(whole.Records))
		}
	})
}

func TestVersions(t *testing.T) {
	t.Parallel()
	b := newExample(t).browser()
	for deleted, want := range map[string][]string{
		"":      {"com.a/One_x@2.0.0", "com.a/One_x@1.0.0"},
		"false": {"com.a/One_x@2.0.0", "com.a/One_x@1.0.0"},
		"true":  {"com.a/One_x@3.0.0", "com.a/One_x@2.0.0", "com.a/One_x@1.0.0"},
	} {
		if got, err := b.Versions(t.Context(), "com.a/One_x",
			deleted); err != nil || !slices.Equal(ids(got.Records), want) || got.Long != nil {
			t.Errorf("include_deleted %q: %v, %v, want %v", deleted, ids(got.Records), err, want)
		}
	}
	for _, name := range []string{"com.c/gone", "com.a/none", "com.a/one_x", "not a name", ""} {
		if _, err := b.Versions(t.Context(), name, ""); !fault.Is(err, fault.NotFound) ||
			err.Error() != "server not found" {
			t.Errorf("versions of %q: %v, want server not found", name, err)
		}
	}
	if got, err := b.Versions(t.Context(), "com.c/gone", "true"); err != nil || len(got.Records) != 1 {
		t.Errorf("deleted ones asked for: %v, %v, want one", ids(got.Records), err)
	}
	if _, err := b.Versions(t.Context(), "com.a/none", "perhaps"); !fault.Is(err, fault.Invalid) {
		t.Errorf("include_deleted perhaps: %v, want a fault of kind Invalid", err)
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	b := newExample(t).browser()
	for _, c := range []struct{ name, version, deleted, want string }{
		{"com.a/One_x", "1.0.0", "", "1.0.0"},
		{"com.a/One_x", "latest", "", "2.0.0"},
		{"com.a/One_x", "3.0.0", "true", "3.0.0"},
		{"com.b/two", "draft", "", "draft"},
		{"com.c/gone", "latest", "true", "1.0.0"},
	} {
		if got, err := b.Version(t.Context(), c.name, c.version, c.deleted); err != nil ||
			got.Version.String() != c.want {
			t.Errorf("%s@%s = %s, %v, want %s", c.name, c.version, got.Version, err, c.want)
		}
	}
	for _, c := range [][2]string{
		{"com.a/One_x", "3.0.0"},
		{"com.a/One_x", "Latest"},
		{"com.a/One_x", "^1.0.0"},
		{"com.a/One_x", ""},
		{"com.c/gone", "latest"},
		{"com.a/none", "latest"},
		{"not a name", "1.0.0"},
	} {
		if _, err := b.Version(t.Context(), c[0], c[1], ""); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s@%s: %v, want not found", c[0], c[1], err)
		}
	}
	if _, err := b.Version(t.Context(), "com.a/none", "1", "perhaps"); !fault.Is(err, fault.Invalid) {
		t.Errorf("include_deleted perhaps: %v, want a fault of kind Invalid", err)
	}
}

// TestStoreFailuresPass: an error of the store reaches the caller.
func TestStoreFailuresPass(t *testing.T) {
	t.Parallel()
	b := newExample(t).browser()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, listErr := b.List(ctx, browsing.Query{})
	_, versionsErr := b.Versions(ctx, "com.a/One_x", "")
	_, versionErr := b.Version(ctx, "com.a/One_x", "latest", "")
	for name, err := range map[string]error{"List": listErr, "Versions": versionsErr, "Version": versionErr} {
		if err == nil || fault.Is(err, fault.NotFound) {
			t.Errorf("%s under a cancelled context = %v, want the store's error", name, err)
		}
	}
}
