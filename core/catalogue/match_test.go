package catalogue_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/catalogue"
)

func TestMatches(t *testing.T) {
	const two = "/courses/{department}/{number}.{format}"
	for _, c := range []struct {
		template, path string
		want           bool
	}{
		{"/api/usage.{format}", "/api/usage.json", true},
		{"/api/usage.{format}", "/api/usage.xml", true},
		{"/api/usage.{format}", "/api/usage.csv", false},
		{"/api/usage.{format}", "/api/usage.JSON", false},
		{"/api/usage.{format}", "/api/usage", false},
		{"/api/usage.{format}", "/api/usage.", false},
		{"/api/usage.{format}", "/api/usage.json/", false},
		{"/api/usage.{format}", "/api/usage.x.json", false},
		{"/api/usage.{format}", "/Api/usage.json", false},
		{"/api/usage.{format}", "api/usage.json", false},
		{"/api/usage.{format}", "/api//usage.json", false},
		{"/api/usage.{format}", "", false},
		{two, "/courses/MATH/135.json", true},
		{two, "/courses/a.b/1.5.xml", true},
		{two, "/courses/MATH.json", false},
		{two, "/courses//135.json", false},
		{two, "/courses/MATH/.json", false},
		{two, "/courses/MATH/135/x.json", false},
		{"/plain", "/plain", true},
		{"/pets/{id}", "/pets/7", true},
		{"/pets/{id}", "/pets/", false},
		{"/pets/{id}", "/pets/7/name", false},
		{"/plain", "/plain.json", false},
	} {
		if got := (catalogue.Method{Path: c.template}).Matches(c.path); got != c.want {
			t.Errorf("%s, %s: %t", c.template, c.path, got)
		}
	}
}

func TestFilledTemplatesMatch(t *testing.T) {
	segment := rapid.StringMatching(`[a-z0-9.%_-]{1,8}`)
	rapid.Check(t, func(t *rapid.T) {
		var template, path strings.Builder
		for range rapid.IntRange(1, 5).Draw(t, "segments") {
			word := segment.Draw(t, "segment")
			path.WriteString("/" + word)
			if rapid.Bool().Draw(t, "parameter") {
				word = "{p}"
			}
			template.WriteString("/" + word)
		}
		format := rapid.SampledFrom([]string{"json", "xml"}).Draw(t, "format")
		m := catalogue.Method{Path: template.String() + ".{format}"}
		if call := path.String() + "." + format; !m.Matches(call) {
			t.Errorf("%s does not match %s", m.Path, call)
		}
	})
}

func TestFindPrefersTheLiteralPath(t *testing.T) {
	building := catalogue.Method{
		ID: 1, Path: "/buildings/{building}.{format}", Parameters: []string{"building", "format"},
	}
	list := catalogue.Method{ID: 2, Path: "/buildings/list.{format}", Parameters: []string{"format"}}
	for path, want := range map[string]catalogue.MethodID{
		"/buildings/list.json": 2, "/buildings/MC.json": 1, "/buildings/list.csv": 0, "/rooms.json": 0,
	} {
		for _, methods := range [][]catalogue.Method{{building, list}, {list, building}} {
			if got, ok := catalogue.Find(methods, path); got.ID != want || ok != (want != 0) {
				t.Errorf("%s: %d, %t, want %d", path, got.ID, ok, want)
			}
		}
	}
}
