package registry

import (
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/must"
)

func TestSummaryOf(t *testing.T) {
	name, err := ParseName("com.example/Weather")
	must.Succeed(t, err)
	own := []Facet{"called:weather", "namespace:com.example", "origin:here", "status:active"}
	for document, want := range map[string]Summary{
		`not JSON`: {Facets: append([]Facet{"remote:false"}, own...)},
		`{"title":" A \n title ","description":"of\nlines","packages":[{"registryType":"NPM","transport":{"type":"stdio"}},
			{"registryType":"npm"},{"registryType":7,"transport":"x"}],"remotes":[{"type":"sse"},{}]}`: {
			"A title", "of\nlines",
			append([]Facet{"package:npm", "remote:true", "transport:sse", "transport:stdio"}, own...),
		},
		`{"title":7,"description":null,"remotes":{}}`: {Facets: append([]Facet{"remote:false"}, own...)},
		`{"title":"` + strings.Repeat("ß", 300) + `","description":"` + strings.Repeat("é", 2000) + `"}`: {
			strings.Repeat("ß", 200), strings.Repeat("é", 1000), append([]Facet{"remote:false"}, own...),
		},
	} {
		slices.Sort(want.Facets)
		got := SummaryOf(Record{Release: Release{Name: name, Status: StatusActive}, Document: []byte(document)})
		if got.Title != want.Title || got.Description != want.Description || !slices.Equal(got.Facets, want.Facets) {
			t.Errorf("the summary of %.60s is %+v, want %+v", document, got, want)
		}
	}
	mirrored := Record{Release: Release{Name: name, Status: StatusDeleted, Origin: Origin{Mirror: "corp"}}}
	if got := SummaryOf(mirrored).Facets; !slices.Contains(got, "origin:corp") || slices.Contains(got, "origin:here") ||
		!slices.Contains(got, "status:deleted") {
		t.Errorf("a mirrored version has the facets %q", got)
	}
}

func TestSummaryHasALimitOfFacets(t *testing.T) {
	var packages []string
	for i := range 200 {
		packages = append(packages, `{"registryType":"`+strings.Repeat("x", i+1)+`"}`)
	}
	s := SummaryOf(Record{Document: []byte(`{"packages":[` + strings.Join(packages, ",") + `]}`)})
	if len(s.Facets) != maxFacets {
		t.Errorf("%d facets, want %d", len(s.Facets), maxFacets)
	}
}

func TestFacetValue(t *testing.T) {
	if f := NewFacet(FacetPackage, "OCI"); f.Value(FacetPackage) != "oci" || f.Value("pack") != "" || f.Value(FacetRemote) != "" {
		t.Errorf("%q has other values", f)
	}
}

func TestMatchOf(t *testing.T) {
	for _, c := range []struct {
		name, title, words string
		want               Match
	}{
		{"com.example/Weather", "", "weather", MatchesName},
		{"com.example/Weather", "", "com.example/weather", MatchesName},
		{"com.example/weather-map", "weather", "weather", MatchesTitle},
		{"com.example/weather", "the weather map", "weather map", MatchesTitle},
		{"com.example/weather", "the map", "weather map", MatchesText},
		{"com.example/x", "", "weather", MatchesText},
		{"com.example/x", "", "com.ex", MatchesStart},
		{"com.example/x", "com.ex", "com.ex", MatchesTitle},
		{"com.example/x", "", "com.ex x", MatchesText},
		{"com.example/x", "", "", MatchesTitle}, // all servers are equal
	} {
		if got := MatchOf(c.name, c.title, strings.Fields(c.words)); got != c.want {
			t.Errorf("%s, titled %q, matches %q as %d, want %d", c.name, c.title, c.words, got, c.want)
		}
	}
}
