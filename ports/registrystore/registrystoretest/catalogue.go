package registrystoretest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// CatalogueStores are an empty store and its catalogue.
type CatalogueStores struct {
	ServerStores
	Catalogue registrystore.Catalogue
}

// RunCatalogue runs the tests of the catalogue. open is called for each test.
func RunCatalogue(t *testing.T, open func(t *testing.T) CatalogueStores) {
	t.Helper()
	parts := map[string]func(t *testing.T, s CatalogueStores){
		"an empty catalogue has no servers":                               catalogueIsEmpty,
		"a search finds what a scan of all servers finds, in its order":   findsWhatAScanFinds,
		"a search that finds many has the best ones first, on all pages":  findsManyInPages,
		"changes while the index is made are in the index afterwards":     indexesParallelChanges,
		"large documents are indexed in several steps":                    indexesLargeDocuments,
		"a search with a cancelled context fails, and so does its index":  refusesEndedSearch,
		"what is not indexed yet is found after the index has come to it": indexesInSteps,
		"versions are counted up to a number":                             countsVersions,
		"the progress counts the servers that wait":                       countsWaiting,
	}
	for name, part := range parts {
		t.Run(name, func(t *testing.T) { part(t, open(t)) })
	}
}

// indexed is how many servers the tests index at once.
const indexed = 50

// indexAll makes the index complete.
func (s CatalogueStores) indexAll(t *testing.T) {
	t.Helper()
	for more := true; more; {
		var err error
		if more, err = s.Catalogue.Index(t.Context(), indexed); err != nil {
			t.Fatal(err)
		}
	}
}

func (s CatalogueStores) find(t *testing.T, q registrystore.Search) registrystore.Finding {
	t.Helper()
	f, err := s.Catalogue.Find(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// titled returns a version whose document has a title and a description.
func titled(r registry.Release, title, description string) registrystore.Change {
	return registrystore.Change{Release: r, Document: fmt.Appendf(nil,
		`{"name":%q,"version":%q,"title":%q,"description":%q,"packages":[{"registryType":"NPM"}]}`,
		r.Name, r.Version, title, description)}
}

func catalogueIsEmpty(t *testing.T, s CatalogueStores) {
	t.Helper()
	s.indexAll(t)
	for _, q := range []registrystore.Search{
		{Limit: 10}, {Words: []string{"a"}, Limit: 10}, {Facets: []registry.Facet{"package:npm"}, Limit: 10, Offset: 2000},
	} {
		if f := s.find(t, q); f.Total != 0 || f.More || len(f.Servers) != 0 {
			t.Errorf("search %+v found %+v", q, f)
		}
	}
}

// chooser makes servers and searches of a few words. Its choices are the same in each run.
type chooser struct{ state uint64 }

// IntN returns a number from 0 to n-1, by Knuth's linear congruential generator (MMIX).
func (c *chooser) IntN(n int) int {
	c.state = c.state*6364136223846793005 + 1442695040888963407
	return int(c.state >> 33 % uint64(n))
}

func (c *chooser) one(of ...string) string { return of[c.IntN(len(of))] }

func (c *chooser) text() string {
	var words []string
	for range c.IntN(4) {
		words = append(words, c.one("Weather", "map", "MAPS", "é à", "100%", "a_b", "x", "tool's", "mcp", "ß"))
	}
	return strings.Join(words, " ")
}

func (c *chooser) change(t *testing.T, name string, version int) registrystore.Change {
	t.Helper()
	r := latest(release(t, name, fmt.Sprintf("1.0.%d", version), version))
	r.Status = registry.Status(c.one("active", "active", "deprecated", "deleted"))
	r.UpdatedAt = hour(version + c.IntN(3))
	doc := fmt.Sprintf(`{"title":%q,"description":%q,"remotes":[%s],"packages":[{"registryType":%q,"transport":{"type":"stdio"}}]}`,
		c.text(), c.text(), c.one("", `{"type":"sse","url":"https://`+name+`"}`), c.one("npm", "oci", "a b"))
	ch := registrystore.Change{Release: r, Document: []byte(doc)}
	if c.IntN(4) == 0 {
		ch.Release.Origin = registry.Origin{Mirror: "corp", URL: "https://other.example", FetchedAt: hour(1)}
	}
	return ch
}

func (c *chooser) search() registrystore.Search {
	q := registrystore.Search{
		Words: strings.Fields(strings.ToLower(c.text())), Deleted: c.IntN(3) == 0, Limit: 1 + c.IntN(9), Offset: c.IntN(3),
		Order: registrystore.Order(c.one("fit", "fit", "name", "updated", "newest")),
	}
	if c.IntN(6) == 0 {
		q.Words = []string{c.one("map", "weather", "com.example/map", "ma", "a")}
	}
	if c.IntN(3) == 0 {
		q.Facets = append(q.Facets, registry.Facet(c.one("package:npm", "package:a b", "remote:true", "origin:corp",
			"origin:here", "status:deprecated", "namespace:com.example", "transport:sse")))
	}
	if c.IntN(4) == 0 {
		q.Names = []registry.NameRange{{From: "com.example/", Below: "com.example0"}}
	}
	if c.IntN(4) == 0 {
		q.Except = []registry.NameRange{{From: "com.example/m", Below: "com.example/n"}}
	}
	return q
}

func findsWhatAScanFinds(t *testing.T, s CatalogueStores) {
	t.Helper()
	c := &chooser{1}
	all := map[string]registry.Record{}
	for i := range 90 {
		name := c.one("com.example/", "org.other/") + c.one("map", "weather-map", "a", "mcp") + c.one("", "-1", "-2", "-x")
		ch := c.change(t, name, i+1)
		changes := []registrystore.Change{ch}
		if before, ok := all[name]; ok {
			before.Latest = false
			changes = append(changes, state(before.Release))
		}
		opened{s.ServerStores}.saved(t, changes...)
		all[name] = registry.Record{Release: ch.Release, Document: ch.Document}
		if i%10 == 0 {
			s.indexAll(t)
		}
	}
	s.indexAll(t)
	for range 300 {
		q := c.search()
		want := scan(all, q)
		f := s.find(t, q)
		var got []string
		for _, r := range f.Servers {
			got = append(got, r.Name.String())
			if want := summaryOf(all[r.Name.String()]); r.Version != all[r.Name.String()].Version ||
				r.Title != want.Title || r.Description != want.Description || len(r.Facets) != len(want.Facets) {
				t.Errorf("found %+v, want the summary %+v", r, want)
			}
		}
		page := want[min(q.Offset, len(want)):min(q.Offset+q.Limit, len(want))]
		if !slices.Equal(got, page) || f.Total != len(want) || f.More {
			t.Errorf("search %+v\nfound %q of %d (more: %v)\nwant  %q of %d", q, got, f.Total, f.More, page, len(want))
		}
		s.wantCounts(t, q, all, want)
	}
}

// wantCounts checks how many of the servers with the names, which a search selects, have each facet.
func (s CatalogueStores) wantCounts(t *testing.T, q registrystore.Search, all map[string]registry.Record, names []string) {
	t.Helper()
	want := map[registry.Facet]int{}
	for _, name := range names {
		for _, f := range summaryOf(all[name]).Facets {
			if f.Value(registry.FacetCalled) == "" {
				want[registry.Facet(strings.ReplaceAll(string(f), " ", "_"))]++
			}
		}
	}
	if got, err := s.Catalogue.Count(t.Context(), q); err != nil || !maps.Equal(got, want) {
		t.Errorf("Count(%+v) = %v, %v, want %v", q, got, err, want)
	}
}

// summaryOf returns the summary of a version of a server without an owner, as the catalogue has it.
func summaryOf(r registry.Record) registry.Summary {
	s := registry.SummaryOf(r)
	s.Facets = append(s.Facets, registry.Owner{}.Facet())
	return s
}

// scan returns the names that a search selects, in order, by the words of the port.
func scan(all map[string]registry.Record, q registrystore.Search) []string {
	var found []registry.Record
	fits := func(r registry.Record) bool {
		s := summaryOf(r)
		text := strings.ToLower(r.Name.String() + "\n" + s.Title + "\n" + s.Description)
		ok := q.Deleted || r.Status != registry.StatusDeleted
		for _, w := range q.Words {
			ok = ok && strings.Contains(text, w)
		}
		for _, f := range q.Facets {
			ok = ok && slices.Contains(s.Facets, f)
		}
		within := func(n registry.NameRange) bool { return n.Contains(r.Name.String()) }
		return ok && (q.Names == nil || slices.ContainsFunc(q.Names, within)) && !slices.ContainsFunc(q.Except, within)
	}
	for _, r := range all {
		if fits(r) {
			found = append(found, r)
		}
	}
	match := func(r registry.Record) registry.Match {
		return registry.MatchOf(r.Name.String(), strings.ToLower(summaryOf(r).Title), q.Words)
	}
	slices.SortFunc(found, func(a, b registry.Record) int {
		first := map[registrystore.Order]int{
			registrystore.ByFit:     cmp.Compare(match(a), match(b)),
			registrystore.ByUpdated: b.UpdatedAt.Compare(a.UpdatedAt), registrystore.ByNewest: b.PublishedAt.Compare(a.PublishedAt),
		}[q.Order]
		return cmp.Or(first, strings.Compare(a.Name.String(), b.Name.String()))
	})
	names := make([]string, len(found))
	for i, r := range found {
		names[i] = r.Name.String()
	}
	return names
}

// fill stores servers with a word in all of their descriptions, and in the titles of every tenth.
func (s CatalogueStores) fill(t *testing.T, n int) map[string]registry.Record {
	t.Helper()
	all := map[string]registry.Record{}
	err := s.Runner.Atomically(t.Context(), func(ctx context.Context) error {
		for i := range n {
			title := ""
			if i%10 == 7 {
				title = "A common title"
			}
			c := titled(latest(release(t, fmt.Sprintf("com.example/s%04d", i), "1.0.0", n-i)), title, "common text")
			if i == n-1 {
				c = titled(latest(release(t, "com.example/common", "1.0.0", n+1)), "", "")
			}
			if _, err := s.Writer.Lock(ctx, c.Release.Name); err != nil {
				return err
			}
			if err := s.Writer.Save(ctx, []registrystore.Change{c}); err != nil {
				return err
			}
			all[c.Release.Name.String()] = registry.Record{Release: c.Release, Document: c.Document}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func findsManyInPages(t *testing.T, s CatalogueStores) {
	t.Helper()
	all := s.fill(t, registrystore.MaxFound+150)
	s.indexAll(t)
	for _, order := range []registrystore.Order{
		registrystore.ByFit, registrystore.ByName, registrystore.ByUpdated, registrystore.ByNewest,
	} {
		q := registrystore.Search{Words: []string{"common"}, Order: order}
		want := scan(all, q)[:registrystore.MaxFound]
		var got []string
		for q.Limit = 170; len(got) < registrystore.MaxFound; q.Offset += q.Limit {
			f := s.find(t, q)
			if f.Total != registrystore.MaxFound || !f.More || len(f.Servers) == 0 {
				t.Fatalf("page at %d has %d servers of %d, more: %v", q.Offset, len(f.Servers), f.Total, f.More)
			}
			for _, r := range f.Servers {
				got = append(got, r.Name.String())
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("order %s: the pages have other servers than the first %d", order, registrystore.MaxFound)
		}
	}
	if f := s.find(t, registrystore.Search{Limit: 5, Offset: 640, Order: registrystore.ByName}); f.Total != len(all) ||
		len(f.Servers) != 5 || f.More {
		t.Errorf("all servers: %d of %d, more: %v", len(f.Servers), f.Total, f.More)
	}
}

func indexesParallelChanges(t *testing.T, s CatalogueStores) {
	t.Helper()
	const servers, changes = 8, 12
	var working sync.WaitGroup
	for i := range servers {
		working.Go(func() {
			for n := 1; n <= changes; n++ {
				c := titled(latest(release(t, fmt.Sprintf("com.example/s%d", i), "1.0.0", 1)), fmt.Sprintf("title %d", n), "")
				if err := (opened{s.ServerStores}).save(t.Context(), c); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 2 {
		working.Go(func() {
			for range 2 * changes {
				if _, err := s.Catalogue.Index(t.Context(), indexed); err != nil {
					t.Error(err)
				}
			}
		})
	}
	working.Wait()
	s.indexAll(t)
	q := registrystore.Search{Words: []string{fmt.Sprintf("title %d", changes)}, Limit: 100}
	if f := s.find(t, q); f.Total != servers {
		t.Errorf("%d servers are found by their last titles, want %d", f.Total, servers)
	}
}

func indexesLargeDocuments(t *testing.T, s CatalogueStores) {
	t.Helper()
	const servers = 7
	for i := range servers {
		c := titled(latest(release(t, fmt.Sprintf("com.example/s%d", i), "1.0.0", 1)), "large", strings.Repeat("x", 1<<20))
		opened{s.ServerStores}.saved(t, c)
	}
	if more, err := s.Catalogue.Index(t.Context(), indexed); err != nil || !more {
		t.Errorf("after some large documents: more is %v, error %v", more, err)
	}
	s.indexAll(t)
	if f := s.find(t, registrystore.Search{Words: []string{"large"}, Limit: 100}); f.Total != servers {
		t.Errorf("%d large servers are found, want %d", f.Total, servers)
	}
}

func indexesInSteps(t *testing.T, s CatalogueStores) {
	t.Helper()
	opened{s.ServerStores}.saved(t, titled(latest(release(t, "com.example/a", "1.0.0", 1)), "before", ""))
	s.indexAll(t)
	opened{s.ServerStores}.saved(t, titled(latest(release(t, "com.example/a", "1.0.0", 1)), "after", ""))
	q := registrystore.Search{Words: []string{"after"}, Limit: 1}
	if f := s.find(t, q); f.Total != 0 {
		t.Errorf("before the index: %+v", f)
	}
	s.indexAll(t)
	if f := s.find(t, q); f.Total != 1 || len(f.Servers) != 1 || f.Servers[0].Title != "after" {
		t.Errorf("after the index: %+v", f)
	}
}

func countsWaiting(t *testing.T, s CatalogueStores) {
	t.Helper()
	want := func(waiting, servers int) {
		t.Helper()
		p, err := s.Catalogue.Progress(t.Context())
		if err != nil || p.Waiting != waiting || waiting > 0 && p.Servers != servers {
			t.Errorf("progress %+v, error %v, want %d of %d waiting", p, err, waiting, servers)
		}
	}
	want(0, 0)
	s.fill(t, 5)
	want(5, 5)
	if more, err := s.Catalogue.Index(t.Context(), 3); err != nil || !more {
		t.Errorf("after 3 of 5 servers: more is %v, error %v", more, err)
	}
	want(2, 5)
	s.indexAll(t)
	want(0, 0)
	opened{s.ServerStores}.saved(t, titled(latest(release(t, "com.example/s0001", "1.0.0", 4)), "again", ""))
	want(1, 5)
}

func countsVersions(t *testing.T, s CatalogueStores) {
	t.Helper()
	for n, want := range []int{0, 1, 2, 2} {
		if got, err := s.Catalogue.CountVersions(t.Context(), 2); err != nil || got != want {
			t.Errorf("of %d versions %d are counted, want %d (%v)", n, got, want, err)
		}
		opened{s.ServerStores}.saved(t, titled(latest(release(t, fmt.Sprintf("com.example/a%d", n), "1.0.0", n+1)), "", ""))
	}
}

func refusesEndedSearch(t *testing.T, s CatalogueStores) {
	t.Helper()
	opened{s.ServerStores}.saved(t, titled(latest(release(t, "com.example/a", "1.0.0", 1)), "", ""))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err1 := s.Catalogue.Find(ctx, registrystore.Search{Words: []string{"a"}, Limit: 1})
	_, err2 := s.Catalogue.Index(ctx, indexed)
	if err1 == nil || err2 == nil {
		t.Errorf("errors %v and %v, want both", err1, err2)
	}
}
