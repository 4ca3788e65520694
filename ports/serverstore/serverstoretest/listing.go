package serverstoretest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/serverstore"
)

// shelf stores servers whose order by bytes is not that of any locale, and
// returns their keys in order.
func (o opened) shelf(t *testing.T) []string {
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

func bytewise(t *testing.T, o opened) {
	t.Helper()
	want := o.shelf(t)
	o.lists(t, serverstore.Query{}, want...)
}

func pageBegins(t *testing.T, o opened) {
	t.Helper()
	o.shelf(t)
	o.lists(t, serverstore.Query{AfterName: "com.example/a", AfterVersion: "2.0.0", Limit: 2}, "com.example/a@A", "com.example/a@a")
	o.lists(t, serverstore.Query{AfterName: "com.example/a", AfterVersion: "2", Limit: 1}, "com.example/a@2.0.0")
	o.lists(t, serverstore.Query{AfterName: "com.example/a", Limit: 1}, "com.example/a@1.0.0")
	o.lists(t, serverstore.Query{AfterName: "com.example/ab", AfterVersion: "1.0.0"}, "com.example/b@1.0.0")
	o.lists(t, serverstore.Query{AfterName: "com.example/b", AfterVersion: "1.0.0"})
}

func pages(t *testing.T, o opened) {
	t.Helper()
	o.shelf(t)
	for _, q := range []serverstore.Query{{}, {LatestOnly: true}, {Search: "EXAMPLE/a"}, {UpdatedSince: hour(3)}, {Version: version(t, "1.0.0")}} {
		want := keys(o.list(t, q))
		for size := 1; size <= len(want)+1; size++ {
			if got := o.walk(t, q, size); !slices.Equal(got, want) {
				t.Errorf("pages of %d of %+v give\n%q, want\n%q", size, q, got, want)
			}
		}
	}
}

// walk reads all pages of a size.
func (o opened) walk(t *testing.T, q serverstore.Query, size int) []string {
	t.Helper()
	var all []string
	for q.Limit = size; ; {
		page := o.list(t, q)
		all = append(all, keys(page)...)
		if len(page) < size {
			return all
		}
		last := page[len(page)-1]
		q.AfterName, q.AfterVersion = last.Name.String(), last.Version.String()
	}
}

func search(t *testing.T, o opened) {
	t.Helper()
	for i, n := range []string{"com.example/weather", "com.example/Weather_Report", "com.example/weatherXreport", "org.other/tool"} {
		o.saved(t, published(release(t, n, "1.0.0", i)))
	}
	weather := []string{"com.example/Weather_Report@1.0.0", "com.example/weather@1.0.0", "com.example/weatherXreport@1.0.0"}
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
		t.Run(fmt.Sprintf("%q", text), func(t *testing.T) { o.lists(t, serverstore.Query{Search: text}, want...) })
	}
}

func updatedSince(t *testing.T, o opened) {
	t.Helper()
	for i, v := range []string{"1.0.0", "2.0.0", "3.0.0"} {
		r := release(t, "com.example/a", v, i)
		if i == 2 {
			r = status(r, registry.StatusDeleted, "", i)
		}
		o.saved(t, published(r))
	}
	o.lists(t, serverstore.Query{UpdatedSince: hour(0).Add(-time.Microsecond)}, "com.example/a@1.0.0", "com.example/a@2.0.0")
	o.lists(t, serverstore.Query{UpdatedSince: hour(0)}, "com.example/a@2.0.0")
	o.lists(t, serverstore.Query{UpdatedSince: hour(1).Add(-time.Microsecond), Deleted: true}, "com.example/a@2.0.0", "com.example/a@3.0.0")
	o.lists(t, serverstore.Query{UpdatedSince: hour(1), Deleted: true}, "com.example/a@3.0.0")
	o.lists(t, serverstore.Query{UpdatedSince: hour(1).In(time.FixedZone("", 7200)), Deleted: true}, "com.example/a@3.0.0")
	o.lists(t, serverstore.Query{UpdatedSince: hour(2), Deleted: true})
}

func exactVersion(t *testing.T, o opened) {
	t.Helper()
	o.shelf(t)
	o.lists(t, serverstore.Query{Version: version(t, "A")}, "com.example/a@A")
	o.lists(t, serverstore.Query{Version: version(t, "1.0.0"), AfterName: "com.example/a"}, "com.example/a@1.0.0",
		"com.example/a-b@1.0.0", "com.example/a.b@1.0.0", "com.example/ab@1.0.0", "com.example/b@1.0.0")
	o.lists(t, serverstore.Query{Version: version(t, "1.0")})
}

func latestOnly(t *testing.T, o opened) {
	t.Helper()
	o.saved(t, published(release(t, "com.example/a", "1.0.0", 0)), published(latest(release(t, "com.example/a", "2.0.0", 1))))
	o.saved(t, published(latest(release(t, "com.example/b", "1.0.0", 0))))
	gone := status(latest(release(t, "com.example/c", "1.0.0", 0)), registry.StatusDeleted, "", 1)
	o.saved(t, published(gone))
	o.lists(t, serverstore.Query{LatestOnly: true}, "com.example/a@2.0.0", "com.example/b@1.0.0")
	o.lists(t, serverstore.Query{LatestOnly: true, Deleted: true}, "com.example/a@2.0.0", "com.example/b@1.0.0", "com.example/c@1.0.0")
	o.lists(t, serverstore.Query{LatestOnly: true, AfterName: "com.example/a", AfterVersion: "2.0.0"}, "com.example/b@1.0.0")
	o.lists(t, serverstore.Query{LatestOnly: true, AfterName: "com.example/a", AfterVersion: "1.9.0", Limit: 1}, "com.example/a@2.0.0")
}

func filtersTogether(t *testing.T, o opened) {
	t.Helper()
	o.saved(t, published(release(t, "com.example/weather", "1.0.0", 0)), published(latest(release(t, "com.example/weather", "2.0.0", 5))))
	o.saved(t, published(latest(release(t, "com.example/tool", "2.0.0", 5))))
	o.saved(t, published(latest(release(t, "org.other/weather", "2.0.0", 0))))
	o.lists(t, serverstore.Query{
		Search: "WEATHER", UpdatedSince: hour(1), Version: version(t, "2.0.0"), LatestOnly: true, Deleted: true, AfterName: "com.a/a", AfterVersion: "1.0.0",
	}, "com.example/weather@2.0.0")
}
