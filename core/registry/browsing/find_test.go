package browsing_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/browsing"
	"github.com/tollgate-dev/tollgate/core/registry/view"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/management"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/test/must"
)

// shelf is a catalogue of the servers com.example/00 to 79 in the order of names, which knows ranges
// of names only, and views and grants. It keeps the searches that it gets.
type shelf struct {
	registrystore.Catalogue

	asked   []registrystore.Search
	waiting int    // servers that are not indexed
	indexed int    // calls of Index
	has     string // a part of the names that it finds
	failure error
}

func (s *shelf) Index(_ context.Context, most int) (bool, error) {
	if s.indexed++; s.failure == nil {
		s.waiting = max(0, s.waiting-most)
	}
	return s.waiting > 0, s.failure
}

func (s *shelf) Progress(context.Context) (registrystore.Progress, error) {
	return registrystore.Progress{Waiting: s.waiting, Servers: 80 + s.waiting}, nil
}

func (s *shelf) Find(_ context.Context, q registrystore.Search) (f registrystore.Finding, err error) {
	s.asked = append(s.asked, q)
	for i := range 80 {
		name, err := registry.ParseName(fmt.Sprintf("com.example/%02d", i))
		if err != nil {
			return f, err
		}
		if !strings.Contains(name.String(), s.has) {
			continue
		}
		within := func(r registry.NameRange) bool { return r.Contains(name.String()) }
		if q.Names != nil && !slices.ContainsFunc(q.Names, within) || slices.ContainsFunc(q.Except, within) {
			continue
		}
		if f.Total++; f.Total > q.Offset && len(f.Servers) < q.Limit {
			f.Servers = append(f.Servers, registrystore.FoundServer{Release: registry.Release{Name: name}})
		}
	}
	return f, nil
}

// somePattern returns a pattern of ten servers.
func somePattern(begin string) registry.Pattern {
	p, err := registry.ParsePattern("com.example/" + begin + "*")
	if err != nil {
		panic(err)
	}
	return p
}

type shelfViews struct{}

func (shelfViews) Known(_ context.Context, who authority.Caller) ([]view.View, error) {
	all := []view.View{
		{Name: "some", Selection: registry.Selection{Include: []registry.Pattern{somePattern("1")}}, Access: view.Public, Deprecated: view.Hide},
		{Name: "closed", Access: view.WithToken},
	}
	if _, err := who.Person(); err == nil {
		all = append(all, view.View{Name: "team", Selection: registry.Selection{Include: []registry.Pattern{somePattern("2")}}, Access: view.People})
	}
	return all, nil
}

// ada is a person with servers of her own.
var ada = authority.NewPerson(authority.Person{UserID: "ada"}, netip.Addr{})

type shelfGrants struct{ registrystore.Grants }

func (shelfGrants) Of(_ context.Context, person registry.Holder) ([]registry.Grant, error) {
	if person != "ada" {
		return nil, nil
	}
	return []registry.Grant{
		{Action: registry.ActionPublish, Pattern: somePattern("5")}, {Action: registry.ActionReview, Pattern: somePattern("1")},
	}, nil
}

func (s *shelf) finder() *browsing.Finder { return s.finderWith(newFixture()) }

func (s *shelf) finderWith(all *fixture) *browsing.Finder {
	return browsing.NewFinder(browsing.FinderPorts{
		Catalogue: s, Servers: all.servers, Views: shelfViews{}, Grants: shelfGrants{},
	})
}

// namesOf returns the last parts of the names on a page.
func namesOf(f browsing.Found) string {
	var names []string
	for _, r := range f.Servers {
		names = append(names, strings.TrimPrefix(r.Name.String(), "com.example/"))
	}
	return strings.Join(names, " ")
}

func TestFindHasOwnServersFirst(t *testing.T) {
	s := new(shelf)
	var pages []string
	for _, page := range []string{"", "2", "3", "4"} {
		f, err := s.finder().Find(t.Context(), browsing.Wanted{Page: page}, ada)
		if err != nil || f.Total != 80 || f.Pages != 3 {
			t.Fatalf("page %s: %d in %d pages, error %v", page, f.Total, f.Pages, err)
		}
		pages = append(pages, namesOf(f))
	}
	all := strings.Fields(strings.Join(pages, " "))
	if got := strings.Join(all[:12], " "); got != "50 51 52 53 54 55 56 57 58 59 00 01" {
		t.Errorf("the first servers are %s", got)
	}
	slices.Sort(all)
	if len(all) != 80 || len(slices.Compact(all)) != 80 || pages[3] != "" {
		t.Errorf("the pages have %d servers, and page 4 %q", len(all), pages[3])
	}
	for _, w := range []browsing.Wanted{{Text: "a"}, {Sort: "name"}, {View: "all"}, {Status: "active"}} {
		if f, err := s.finder().Find(t.Context(), w, ada); err != nil || !strings.HasPrefix(namesOf(f), "00 01") {
			t.Errorf("%+v begins with %.8s, error %v", w, namesOf(f), err)
		}
	}
}

func TestFindKeepsWhatIsWanted(t *testing.T) {
	s := new(shelf)
	w := browsing.Wanted{
		Text: " Two  WORDS ", Status: "deleted", Namespace: "Com.Example", Package: "npm", Transport: "stdio", Remote: "true",
		Origin: "here", Sort: "newest", Page: "3",
	}
	if _, err := s.finder().Find(t.Context(), w, authority.Caller{}); err != nil {
		t.Fatal(err)
	}
	want := registrystore.Search{
		Words: []string{"two", "words"}, Deleted: true, Order: registrystore.ByNewest, Offset: 60, Limit: 30,
		Facets: []registry.Facet{
			"status:deleted", "namespace:com.example", "package:npm", "transport:stdio", "remote:true", "origin:here",
		},
	}
	if got := fmt.Sprintf("%+v", s.asked); got != fmt.Sprintf("%+v", []registrystore.Search{want}) {
		t.Errorf("asked %s", got)
	}
}

func TestFindInViews(t *testing.T) {
	s := new(shelf)
	f, err := s.finder().Find(t.Context(), browsing.Wanted{View: "some"}, authority.Caller{})
	if err != nil || f.Total != 10 || !slices.Contains(s.asked[0].Facets, "status:active") {
		t.Errorf("the view has %d servers, asked %+v, error %v", f.Total, s.asked, err)
	}
	if f, err = s.finder().Find(t.Context(), browsing.Wanted{View: "team"}, ada); err != nil || f.Total != 10 {
		t.Errorf("the view of people has %d servers, error %v", f.Total, err)
	}
}

func TestFindRefusesWrongParameters(t *testing.T) {
	long := strings.Repeat("a", 301)
	for field, w := range map[string][]browsing.Wanted{
		"q ":         {{Text: long}, {Text: "1 2 3 4 5 6 7 8 9"}, {Text: "\x00"}, {Text: "\xff"}},
		"status ":    {{Status: "gone"}},
		"remote ":    {{Remote: "1"}},
		"namespace ": {{Namespace: long}},
		"package ":   {{Package: "\x00"}},
		"transport ": {{Transport: long}},
		"origin ":    {{Origin: long}},
		"sort ":      {{Sort: "size"}},
		"page ":      {{Page: "0"}, {Page: "-1"}, {Page: "x"}, {Page: "100001"}, {Page: "1e3"}},
		"view ":      {{View: "closed"}, {View: "team"}, {View: "unknown"}, {View: "A"}},
	} {
		for _, one := range w {
			_, err := new(shelf).finder().Find(t.Context(), one, authority.Caller{})
			if !fault.Is(err, fault.Invalid) || !strings.HasPrefix(err.Error(), field) {
				t.Errorf("%.80v is answered with %v, want a fault of %s", one, err, field)
			}
		}
	}
}

func TestFindSaysWhatIsNotText(t *testing.T) {
	for _, w := range []browsing.Wanted{{Text: "a\x00"}, {Origin: "\xff"}} {
		_, err := new(shelf).finder().Find(t.Context(), w, authority.Caller{})
		if err == nil || !strings.HasSuffix(err.Error(), "must be text in UTF-8, without the character NUL") {
			t.Errorf("%+v is answered with %v", w, err)
		}
	}
}

// TestFindIndexesFirst checks that a search indexes what was published a moment ago, and leaves more
// than that to Run.
func TestFindIndexesFirst(t *testing.T) {
	for waiting, calls := range map[int]int{0: 0, 1: 1, 50: 1, 200: 4, 201: 0, 300_000: 0} {
		s := &shelf{waiting: waiting}
		f, err := s.finderWith(newFixture()).Find(t.Context(), browsing.Wanted{Text: "none"}, authority.Caller{})
		if err != nil || s.indexed != calls || f.Making.Waiting != s.waiting {
			t.Errorf("%d waiting: %d calls of Index, making %+v, error %v", waiting, s.indexed, f.Making, err)
		}
	}
}

// TestFindWhileTheCatalogueIsMade checks that servers that are not in the catalogue are found by their
// names, each once, in the order and by the filters of the search: after an import, and while the
// database cannot be written.
func TestFindWhileTheCatalogueIsMade(t *testing.T) {
	fx := newFixture().publish(t, "com.example/70@1.0.0", "com.example/new@1.0.0", "org.other/70@1.0.0", "org.other/7@1.0.0")
	for name, s := range map[string]*shelf{
		"imported":   {waiting: 1000},
		"unwritable": {waiting: 2, failure: fault.New(fault.Unavailable, "the database cannot be written at present")},
	} {
		for text, want := range map[string]string{
			"EXAMPLE/new": "new", "70": "70 org.other/70", "other 7": "org.other/7 org.other/70", "published nowhere": "",
		} {
			s.has = text
			f, err := s.finderWith(fx).Find(t.Context(), browsing.Wanted{Text: text}, authority.Caller{})
			if err != nil || namesOf(f) != want || f.Making.Waiting == 0 || f.Total != len(f.Servers) {
				t.Errorf("%s: %q finds %q of %d, making %+v, error %v", name, text, namesOf(f), f.Total, f.Making, err)
			}
		}
		s.has = "7"
		f, err := s.finderWith(fx).Find(t.Context(), browsing.Wanted{Text: "7", Remote: "true"}, authority.Caller{})
		if err != nil || strings.Contains(namesOf(f), "org.other") {
			t.Errorf("%s: with remotes there are %q, error %v", name, namesOf(f), err)
		}
	}
	s := &shelf{waiting: 1000}
	f, err := s.finderWith(fx).Find(t.Context(), browsing.Wanted{Page: "3"}, ada)
	if err != nil || f.Total != 83 || !strings.HasSuffix(namesOf(f), "78 79 new org.other/7 org.other/70") {
		t.Errorf("the last page has %q of %d, error %v", namesOf(f), f.Total, err)
	}
}

// library is a catalogue of a few titles.
type library struct {
	registrystore.Catalogue

	titles []string
	asked  int
}

func (l *library) Progress(context.Context) (p registrystore.Progress, err error) { return p, nil }

func (l *library) Find(_ context.Context, q registrystore.Search) (f registrystore.Finding, err error) {
	l.asked++
	for _, title := range l.titles {
		if !slices.ContainsFunc(q.Words, func(w string) bool { return !strings.Contains(strings.ToLower(title), w) }) {
			f.Servers = append(f.Servers, registrystore.FoundServer{Summary: registry.Summary{Title: title}})
		}
	}
	f.Total = len(f.Servers)
	return f, nil
}

// TestFindForgivesALetter expects that a search which finds nothing is corrected by one letter of one
// word, to a word that servers have, and says so.
func TestFindForgivesALetter(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		corrected string
		found     int
	}{
		"calender": {"calendar", 2}, "Kalendar": {"calendar", 2}, "calendr": {"calendar", 2}, "callendar": {"calendar", 2},
		"free calender": {"free calendar", 1}, "calendar": {"", 2}, "calindir": {"", 0}, "tme": {"", 0}, "wether": {"weather", 1},
		"meetting rooms": {"", 0}, "free/calender": {"free calendar", 1}, "-.-": {"", 0},
	} {
		l := &library{titles: []string{"A calendar of free times", "Team calendar", "Weather, here", "Rooms"}}
		f := browsing.NewFinder(browsing.FinderPorts{Catalogue: l, Views: shelfViews{}, Grants: shelfGrants{}})
		got, err := f.Find(t.Context(), browsing.Wanted{Text: text}, authority.Caller{})
		if err != nil || got.Corrected != want.corrected || got.Total != want.found {
			t.Errorf("%q: corrected to %q, %d found, %v, want %q and %d", text, got.Corrected, got.Total, err, want.corrected, want.found)
		}
		in, err := f.FindIn(t.Context(), nil, text, 0, 10)
		if err != nil || in.Total != want.found {
			t.Errorf("%q: FindIn finds %d, %v, want %d", text, in.Total, err, want.found)
		}
	}
	l := &library{}
	must.Succeed(t, func() error {
		_, err := browsing.NewFinder(browsing.FinderPorts{Catalogue: l}).FindIn(t.Context(), nil, "alpha1 beta22 gamma3 delta4 omega5 kappa6", 0, 10)
		return err
	}())
	if l.asked > 10 {
		t.Errorf("a search that finds nothing asks the catalogue %d times", l.asked)
	}
}

// shelfCollections has one collection.
type shelfCollections struct {
	management.Store[view.CollectionName, view.Collection]
}

func (shelfCollections) Get(_ context.Context, name view.CollectionName) (c view.Collection, err error) {
	if name != "start" {
		return c, fault.New(fault.NotFound, "no such record")
	}
	names := make([]string, 0, 40)
	for i := 49; i >= 10; i-- {
		names = append(names, fmt.Sprintf("com.example/%02d", i))
	}
	return view.ParseCollection(audit.Details{
		"name": audit.Text("start"), "sentence": audit.Text("For all."), "servers": audit.Texts(append(names, "com.example/none")),
	})
}

// TestFindInACollection has the servers of a collection in its order on all pages, and of a view only those
// that the view has.
func TestFindInACollection(t *testing.T) {
	f := browsing.NewFinder(browsing.FinderPorts{
		Catalogue: new(shelf), Servers: newFixture().servers, Views: shelfViews{}, Grants: shelfGrants{}, Collections: shelfCollections{},
	})
	for _, c := range []struct {
		wanted browsing.Wanted
		total  int
		begin  string
	}{
		{browsing.Wanted{}, 40, "49 48 47"},
		{browsing.Wanted{Page: "2"}, 40, "19 18 17"},
		{browsing.Wanted{Page: "3"}, 40, ""},
		{browsing.Wanted{Sort: "name"}, 40, "10 11 12"},
		{browsing.Wanted{View: "some"}, 10, "19 18 17"},
	} {
		c.wanted.Collection = "start"
		found, err := f.Find(t.Context(), c.wanted, ada)
		if got := namesOf(found); err != nil || found.Total != c.total || !strings.HasPrefix(got, c.begin) || c.begin == "" && got != "" {
			t.Errorf("%+v: %d servers, %s, error %v", c.wanted, found.Total, got, err)
		}
	}
	for _, name := range []string{"none", "All", "\x00"} {
		if _, err := f.Find(t.Context(), browsing.Wanted{Collection: name}, ada); !fault.Is(err, fault.Invalid) {
			t.Errorf("the collection %q: %v", name, err)
		}
	}
}
