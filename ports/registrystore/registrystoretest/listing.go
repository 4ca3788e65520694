package registrystoretest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// saveUnsortedServers stores servers whose order by bytes is not that of any locale, and
// returns their keys in order.
func (o opened) saveUnsortedServers(t *testing.T) []string {
	t.Helper()
	ordered := []struct{ name, version string }{
		{"com-example/a", "1.0.0"},
		{"com.Example/a", "1.0.0"},
		{"com.example/A", "1.0.0"},
		{"com.example/Z", "1.0.0"},
		{"com.example/_", "1.0.0"},
		{"com.example/a", "1.0.0"},
		{"com.example/a", "1.0.0+b"},
		{"com.example/a", "1.0.0-rc"},
		{"com.example/a", "10.0.0"},
		{"com.example/a", "2.0.0"},
		{"com.example/a", "A"},
		{"com.example/a", "a"},
		{"com.example/a", "ß"},
		{"com.example/a-b", "1.0.0"},
		{"com.example/a.b", "1.0.0"},
		{"com.example/ab", "1.0.0"},
		{"com.example/b", "1.0.0"},
	}
	all := make([]string, 0, len(ordered))
	for i, s := range slices.Backward(ordered) {
		r := release(t, s.name, s.version, len(ordered)-i)
		r.Latest = i == 0 || ordered[i-1].name != s.name
		o.saved(t, published(r))
		all = append(all, s.name+"@"+s.version)
	}
	slices.Reverse(all)
	return all
}

func listsInByteOrder(t *testing.T, o opened) {
	t.Helper()
	want := o.saveUnsortedServers(t)
	o.lists(t, registrystore.Query{}, want...)
}

func beginsAfterCursor(t *testing.T, o opened) {
	t.Helper()
	o.saveUnsortedServers(t)
	o.lists(t, registrystore.Query{AfterName: "com.example/a", AfterVersion: "2.0.0", Limit: 2}, "com.example/a@A",
		"com.example/a@a")
	o.lists(t, registrystore.Query{AfterName: "com.example/a", AfterVersion: "2", Limit: 1}, "com.example/a@2.0.0")
	o.lists(t, registrystore.Query{AfterName: "com.example/a", Limit: 1}, "com.example/a@1.0.0")
	o.lists(t, registrystore.Query{AfterName: "com.example/ab", AfterVersion: "1.0.0"}, "com.example/b@1.0.0")
	o.lists(t, registrystore.Query{AfterName: "com.example/b", AfterVersion: "1.0.0"})
}

func readsPages(t *testing.T, o opened) {
	t.Helper()
	o.saveUnsortedServers(t)
	for _, q := range []registrystore.Query{
		{}, {LatestOnly: true}, {Search: "EXAMPLE/a"}, {UpdatedSince: hour(3)}, {Version: version(t, "1.0.0")},
	} {
		want := keys(o.list(t, q))
		for size := 1; size <= len(want)+1; size++ {
			if got := o.readPages(t, q, size); !slices.Equal(got, want) {
				t.Errorf("pages of %d of %+v give\n%q, want\n%q", size, q, got, want)
			}
		}
		for _, q.Bytes = range []int{1, 50, 100, 1000} {
			if got := o.readPages(t, q, 3); !slices.Equal(got, want) {
				t.Errorf("pages of %d bytes of %+v give\n%q, want\n%q", q.Bytes, q, got, want)
			}
		}
	}
}

// readPages reads all pages of a size. Each but the last one ends for a reason.
func (o opened) readPages(t *testing.T, q registrystore.Query, size int) []string {
	t.Helper()
	var all []string
	for q.Limit = size; ; {
		page, held := o.page(t, q), 0
		for i, r := range page.Records {
			if i == size || q.Bytes > 0 && held >= q.Bytes {
				t.Errorf("%+v has %d records of %d bytes before its record %d", q, i, held, i)
			}
			held += len(r.Document)
		}
		if page.More && len(page.Records) < size && (q.Bytes == 0 || held < q.Bytes) {
			t.Fatalf("%+v ends with %d records of %d bytes and reports more", q, len(page.Records), held)
		}
		all = append(all, keys(page.Records)...)
		if !page.More {
			return all
		}
		q.AfterName, q.AfterVersion = page.End()
	}
}

// readsVersionPages reads the versions of a server, whose documents have 30 bytes
// and 15 characters, in pages of each kind.
func readsVersionPages(t *testing.T, o opened) {
	t.Helper()
	const n = 7
	for i := range n {
		r := release(t, "com.example/a", strconv.Itoa(i), i)
		if i == 3 {
			r = status(r, registry.StatusDeleted, "", i)
		}
		o.saved(t, registrystore.Change{Release: r, Document: []byte(strings.Repeat("ü", 15))})
	}
	o.saved(t, published(release(t, "com.example/b", "1", n)))
	for q, want := range map[registrystore.VersionsQuery][]string{
		{}:                             {"6 5 4 2 1 0"},
		{Deleted: true}:                {"6 5 4 3 2 1 0"},
		{Limit: 4}:                     {"6 5 4 2", "1 0"},
		{Limit: 6}:                     {"6 5 4 2 1 0"},
		{Bytes: 1}:                     {"6", "5", "4", "2", "1", "0"},
		{Bytes: 60, Deleted: true}:     {"6 5", "4 3", "2 1", "0"},
		{Bytes: 61}:                    {"6 5 4", "2 1 0"},
		{Bytes: 1000}:                  {"6 5 4 2 1 0"},
		{Bytes: 61, Limit: 2}:          {"6 5", "4 2", "1 0"},
		{Before: hour(4), Limit: 2}:    {"2 1", "0"},
		{Before: hour(0), Bytes: 1000}: {""},
	} {
		q.Name = name(t, "com.example/a")
		if got := o.readVersionPages(t, q); !slices.Equal(got, want) {
			t.Errorf("%+v gives the pages %q, want %q", q, got, want)
		}
	}
}

// readVersionPages returns the versions of each page.
func (o opened) readVersionPages(t *testing.T, q registrystore.VersionsQuery) []string {
	t.Helper()
	var pages []string
	for {
		page := o.versionsPage(t, q)
		var versions []string
		for _, r := range page.Records {
			versions = append(versions, r.Version.String())
			q.Before = r.PublishedAt
		}
		pages = append(pages, strings.Join(versions, " "))
		if !page.More {
			return pages
		}
	}
}

// readsManyVersions checks that pages contain all of many versions, whatever limits a page.
func readsManyVersions(t *testing.T, o opened) {
	t.Helper()
	const n = 300
	changes := make([]registrystore.Change, n)
	for i := range changes {
		changes[i] = published(release(t, "com.example/a", strconv.Itoa(i), i))
	}
	o.saved(t, changes...)
	for _, q := range []registrystore.VersionsQuery{{}, {Bytes: 1 << 20}, {Limit: n}, {Limit: 100}, {Bytes: 5000}} {
		q.Name = name(t, "com.example/a")
		got := strings.Fields(strings.Join(o.readVersionPages(t, q), " "))
		for i, v := range got {
			if v != strconv.Itoa(n-1-i) {
				t.Fatalf("%+v gives %s as number %d", q, v, i)
			}
		}
		if len(got) != n {
			t.Errorf("%+v gives %d versions, want %d", q, len(got), n)
		}
	}
	if got, err := o.Reader.Outline(t.Context(), name(t, "com.example/a"), false); err != nil || len(got) != n {
		t.Errorf("the outline has %d versions, %v, want %d", len(got), err, n)
	}
}

func returnsOutlines(t *testing.T, o opened) {
	t.Helper()
	if got, err := o.Reader.Outline(t.Context(), name(t, "com.example/a"), true); err != nil || len(got) != 0 {
		t.Errorf("the outline of no server is %v, %v", got, err)
	}
	for i, size := range []int{2, 1 << 20, 30} {
		r := release(t, "com.example/a", strconv.Itoa(i), i)
		if i == 0 {
			r = status(r, registry.StatusDeleted, "gone", 5)
		}
		o.saved(t, registrystore.Change{Release: r, Document: []byte(strings.Repeat("ü", size/2))})
	}
	o.saved(t, published(release(t, "com.example/b", "1", 9)))
	for _, deleted := range []bool{false, true} {
		got, err := o.Reader.Outline(t.Context(), name(t, "com.example/a"), deleted)
		if err != nil {
			t.Fatal(err)
		}
		var want []registry.Edition
		for _, r := range o.versions(t, "com.example/a", deleted) {
			want = append(want, registry.Edition{Release: r.Release, Size: len(r.Document)})
		}
		if !slices.Equal(got, want) {
			t.Errorf("the outline is\n%v, want\n%v", got, want)
		}
	}
}

func findsByText(t *testing.T, o opened) {
	t.Helper()
	for i, n := range []string{
		"com.example/weather", "com.example/Weather_Report", "com.example/weatherXreport", "org.other/tool",
	} {
		o.saved(t, published(release(t, n, "1.0.0", i)))
	}
	weather := []string{
		"com.example/Weather_Report@1.0.0", "com.example/weather@1.0.0", "com.example/weatherXreport@1.0.0",
	}
	cases := map[string][]string{
		"weather":           weather,
		"WEATHER":           weather,
		"eath":              weather,
		"e/w":               weather,
		"r_r":               {"com.example/Weather_Report@1.0.0"},
		"_":                 {"com.example/Weather_Report@1.0.0"},
		"R_":                {"com.example/Weather_Report@1.0.0"},
		"rxr":               {"com.example/weatherXreport@1.0.0"},
		"o":                 append(slices.Clone(weather), "org.other/tool@1.0.0"),
		"L":                 append(slices.Clone(weather), "org.other/tool@1.0.0"),
		"x":                 weather,
		"/t":                {"org.other/tool@1.0.0"},
		"OL":                {"org.other/tool@1.0.0"},
		"rt":                {"com.example/Weather_Report@1.0.0", "com.example/weatherXreport@1.0.0"},
		"xr":                {"com.example/weatherXreport@1.0.0"},
		"zz":                nil,
		"q":                 nil,
		"lo":                nil,
		"\x01":              nil,
		"r\x01":             nil,
		"er\x01\x01":        nil,
		"%":                 nil,
		"w%r":               nil,
		"weather%":          nil,
		`\`:                 nil,
		`\_`:                nil,
		`r\_r`:              nil,
		"'":                 nil,
		`"`:                 nil,
		`"weather"`:         nil,
		"weather OR tool":   nil,
		"weath*":            nil,
		"?0":                nil,
		"wéather":           nil,
		"org.other/tool":    {"org.other/tool@1.0.0"},
		"org.other/tooll":   nil,
		"com.example/none ": nil,
	}
	for text, want := range cases {
		t.Run(fmt.Sprintf("%q", text), func(t *testing.T) { o.lists(t, registrystore.Query{Search: text}, want...) })
	}
}

// followsStatus deletes and restores versions, with the latest flag moving as the
// core moves it, and without, and wants each listing to follow.
func followsStatus(t *testing.T, o opened) {
	t.Helper()
	old, last := release(t, "com.example/weather", "1.0.0", 0), latest(release(t, "com.example/weather", "2.0.0", 1))
	other := latest(release(t, "com.example/tool", "1.0.0", 2))
	o.saved(t, published(old), published(last))
	o.saved(t, published(other))
	gone := func(r registry.Release) registry.Release { return status(r, registry.StatusDeleted, "gone", 5) }
	flagged := func(r registry.Release, is bool) registry.Release {
		r.Latest = is
		return r
	}
	const one, two, tool = "com.example/weather@1.0.0", "com.example/weather@2.0.0", "com.example/tool@1.0.0"
	for _, step := range []struct {
		changes                    []registry.Release
		listed, latest, withLatest []string
	}{
		{nil, []string{tool, one, two}, []string{tool, two}, []string{tool, two}},
		// the flag stays: the store leaves it to the core
		{[]registry.Release{gone(last)}, []string{tool, one}, []string{tool}, []string{tool, two}},
		{
			[]registry.Release{flagged(gone(last), false), flagged(old, true)}, []string{tool, one}, []string{
				tool, one,
			}, []string{tool, one},
		},
		{[]registry.Release{gone(flagged(old, true))}, []string{tool}, []string{tool}, []string{tool, one}},
		{
			[]registry.Release{status(flagged(last, true), registry.StatusDeprecated, "old", 6), gone(old)}, []string{
				tool, two,
			}, []string{tool, two}, []string{tool, two},
		},
		{[]registry.Release{old, last}, []string{tool, one, two}, []string{tool, two}, []string{tool, two}},
	} {
		var changes []registrystore.Change
		for _, r := range step.changes {
			changes = append(changes, state(r))
		}
		if changes != nil {
			o.saved(t, changes...)
		}
		o.lists(t, registrystore.Query{}, step.listed...)
		o.lists(t, registrystore.Query{Deleted: true}, tool, one, two)
		o.lists(t, registrystore.Query{LatestOnly: true}, step.latest...)
		o.lists(t, registrystore.Query{LatestOnly: true, Deleted: true}, step.withLatest...)
		for _, search := range []string{"h", "EA", "weather"} {
			o.lists(t, registrystore.Query{Search: search}, containing(step.listed, "weather")...)
			o.lists(t, registrystore.Query{Search: search, Deleted: true}, one, two)
			o.lists(t, registrystore.Query{Search: search, LatestOnly: true}, containing(step.latest, "weather")...)
			o.lists(t, registrystore.Query{Search: search, Version: version(t, "2.0.0")},
				containing(containing(step.listed, "weather"), "@2.0.0")...)
		}
		o.lists(t, registrystore.Query{Version: version(t, "2.0.0")}, containing(step.listed, "@2.0.0")...)
		if got := keys(o.versions(t, "com.example/weather", false)); !slices.Equal(got,
			reversed(containing(step.listed, "weather"))) {
			t.Errorf("the versions are %q after %v", got, step.changes)
		}
		record, err := o.Reader.Latest(t.Context(), old.Name, false)
		if want := containing(step.latest, "weather"); fault.Is(err, fault.NotFound) != (want == nil) ||
			err == nil && !slices.Equal(keys([]registry.Record{record}), want) {
			t.Errorf("the latest version is %v, %v, want %q", record.Release, err, want)
		}
	}
}

// containing returns the keys that have a text in them.
func containing(keys []string, text string) (some []string) {
	for _, k := range keys {
		if strings.Contains(k, text) {
			some = append(some, k)
		}
	}
	return some
}

func reversed(keys []string) []string {
	slices.Reverse(keys)
	return keys
}

func listsUpdatedSince(t *testing.T, o opened) {
	t.Helper()
	for i, v := range []string{"1.0.0", "2.0.0", "3.0.0"} {
		r := release(t, "com.example/a", v, i)
		if i == 2 {
			r = status(r, registry.StatusDeleted, "", i)
		}
		o.saved(t, published(r))
	}
	o.lists(t, registrystore.Query{UpdatedSince: hour(0).Add(-time.Microsecond)}, "com.example/a@1.0.0",
		"com.example/a@2.0.0")
	o.lists(t, registrystore.Query{UpdatedSince: hour(0)}, "com.example/a@2.0.0")
	o.lists(t, registrystore.Query{UpdatedSince: hour(1).Add(-time.Microsecond), Deleted: true}, "com.example/a@2.0.0",
		"com.example/a@3.0.0")
	o.lists(t, registrystore.Query{UpdatedSince: hour(1), Deleted: true}, "com.example/a@3.0.0")
	o.lists(t, registrystore.Query{UpdatedSince: hour(1).In(time.FixedZone("", 7200)), Deleted: true},
		"com.example/a@3.0.0")
	o.lists(t, registrystore.Query{UpdatedSince: hour(2), Deleted: true})
}

func listsExactVersion(t *testing.T, o opened) {
	t.Helper()
	o.saveUnsortedServers(t)
	o.lists(t, registrystore.Query{Version: version(t, "A")}, "com.example/a@A")
	o.lists(t, registrystore.Query{Version: version(t, "1.0.0"), AfterName: "com.example/a"}, "com.example/a@1.0.0",
		"com.example/a-b@1.0.0", "com.example/a.b@1.0.0", "com.example/ab@1.0.0", "com.example/b@1.0.0")
	o.lists(t, registrystore.Query{Version: version(t, "1.0")})
}

func listsLatestOnly(t *testing.T, o opened) {
	t.Helper()
	o.saved(t, published(release(t, "com.example/a", "1.0.0", 0)),
		published(latest(release(t, "com.example/a", "2.0.0", 1))))
	o.saved(t, published(latest(release(t, "com.example/b", "1.0.0", 0))))
	gone := status(latest(release(t, "com.example/c", "1.0.0", 0)), registry.StatusDeleted, "", 1)
	o.saved(t, published(gone))
	o.lists(t, registrystore.Query{LatestOnly: true}, "com.example/a@2.0.0", "com.example/b@1.0.0")
	o.lists(t, registrystore.Query{LatestOnly: true, Deleted: true}, "com.example/a@2.0.0", "com.example/b@1.0.0",
		"com.example/c@1.0.0")
	o.lists(t, registrystore.Query{LatestOnly: true, AfterName: "com.example/a", AfterVersion: "2.0.0"},
		"com.example/b@1.0.0")
	o.lists(t, registrystore.Query{LatestOnly: true, AfterName: "com.example/a", AfterVersion: "1.9.0", Limit: 1},
		"com.example/a@2.0.0")
}

func combinesFilters(t *testing.T, o opened) {
	t.Helper()
	o.saved(t, published(release(t, "com.example/weather", "1.0.0", 0)),
		published(latest(release(t, "com.example/weather", "2.0.0", 5))))
	o.saved(t, published(latest(release(t, "com.example/tool", "2.0.0", 5))))
	o.saved(t, published(latest(release(t, "org.other/weather", "2.0.0", 0))))
	o.lists(t, registrystore.Query{
		Search: "WEATHER", UpdatedSince: hour(1), Version: version(t, "2.0.0"), LatestOnly: true, Deleted: true,
		AfterName: "com.a/a", AfterVersion: "1.0.0",
	}, "com.example/weather@2.0.0")
}
