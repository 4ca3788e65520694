package catalogue

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/browsing"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/core/registry/view"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// facet is a group of filters.
type facet struct {
	Text   string
	Values []choice
}

// choice is a filter or an order. The path of a filter that is chosen removes it.
type choice struct {
	Text, Path string
	Count      int // of servers; 0 where that is not known
	Current    bool
}

// maxValues is how many values of a facet the page has, the most frequent ones.
const maxValues = 8

// hues are the colours of tiles.
const hues = "abcdefgh"

// hueOf returns the colour of the tile of a server, which depends on its namespace.
func hueOf(name registry.Name) string {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(name.Namespace())) // a hash never fails to write
	at := sum.Sum32() >> 16 % uint32(len(hues))
	return hues[at : at+1]
}

// sorts returns the orders of a list.
func sorts(w browsing.Wanted) (all []choice) {
	for _, order := range [][2]string{{"", "Best match"}, {"name", "Name"}, {"updated", "Updated"}, {"newest", "Newest"}} {
		all = append(all, choice{order[1], pathWith(w, "sort", order[0]), 0, w.Sort == order[0] || order[0] == "" && w.Sort == "fit"})
	}
	return all
}

// pathWith returns the address of a search with another value of one parameter; without it for none.
func pathWith(w browsing.Wanted, name, value string) string {
	all := filters(w)
	all.Set(name, value)
	if value == "" {
		all.Del(name)
	}
	if len(all) == 0 {
		return site.Home
	}
	return site.Home + "?" + all.Encode()
}

// facets returns the filters with the numbers of servers, and how many are chosen.
func (p *Pages) facets(v *site.Visit, w browsing.Wanted, counts map[registry.Facet]int, collections []string) (all []facet, chosen int, err error) {
	views, err := p.readableViews(v)
	if err != nil {
		return nil, 0, err
	}
	var packages, transports []string // without numbers, those that are usual
	if counts == nil {
		packages, transports = []string{"npm", "pypi", "oci", "nuget", "cargo", "mcpb"}, []string{"stdio", "streamable-http", "sse"}
	}
	for _, group := range []struct {
		text   string
		kind   string            // the parameter, with the name of the facet
		always []string          // values that are there without a number
		words  map[string]string // in place of values
	}{
		{"Remote", registry.FacetRemote, nil, map[string]string{"true": "with an address", "false": "without"}},
		{"Package", registry.FacetPackage, packages, nil},
		{"Namespace", registry.FacetNamespace, nil, nil},
		{"Transport", registry.FacetTransport, transports, nil},
		{"Tools", registry.FacetTools, nil, map[string]string{
			"approved": "approved", "changed": "changed since", "destructive": "some may destroy", "read-only": "all only read",
		}},
		{"Origin", registry.FacetOrigin, nil, map[string]string{registry.OwnOrigin: "published here"}},
		{"Owner", registry.FacetOwner, nil, map[string]string{"none": "without an owner", "known": "with an owner"}},
		{"Status", registry.FacetStatus, []string{string(registry.StatusDeleted)}, nil},
		{"View", "view", views, nil},
		{"Collection", "collection", collections, nil},
	} {
		value := filters(w).Get(group.kind)
		values := valuesOf(group.kind, value, counts, group.always)
		for i := range values {
			values[i].Text = cmp.Or(group.words[values[i].Text], values[i].Text)
			values[i].Path = pathWith(w, group.kind, values[i].Path)
		}
		if value != "" {
			chosen++
		}
		if value != "" || len(values) > 1 || (group.kind == "view" || group.kind == "collection") && len(values) > 0 {
			all = append(all, facet{group.text, values})
		}
	}
	return all, chosen, nil
}

// valuesOf returns the values of a facet with their numbers, the most frequent ones first: that which is
// chosen, or all. The Path is the value of the parameter that it leads to.
func valuesOf(kind, chosen string, counts map[registry.Facet]int, always []string) (all []choice) {
	if chosen != "" {
		return []choice{{Text: chosen, Current: true}}
	}
	for f, n := range counts {
		if value := f.Value(kind); value != "" {
			all = append(all, choice{Text: value, Path: value, Count: n})
		}
	}
	slices.SortFunc(all, func(a, b choice) int { return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Text, b.Text)) })
	all = all[:min(len(all), maxValues)]
	for _, value := range always {
		if !slices.ContainsFunc(all, func(c choice) bool { return c.Text == value }) {
			all = append(all, choice{Text: value, Path: value})
		}
	}
	return all
}

// readableViews returns the names of the views that the reader may search in.
func (p *Pages) readableViews(v *site.Visit) (names []string, err error) {
	who, err := v.Reader()
	if err != nil {
		return nil, err
	}
	known, err := p.ports.Views.Known(v.UserContext(), who)
	for _, one := range known {
		if one.Access != view.WithToken && len(names) < maxValues {
			names = append(names, string(one.Name))
		}
	}
	return names, err
}

// approval returns who approved a version and when, in words, for people who are signed in.
func approval(v *site.Visit, f registrystore.FoundServer) (string, error) {
	if f.ApprovedBy == "" || !v.SignedIn() || !v.Session.TrustLevel.Admits(auth.Unverified) {
		return "", nil
	}
	by, err := v.NameOf(f.ApprovedBy)
	if by, _, _ = strings.Cut(by, "@"); by == review.Operator {
		by = "an operator"
	}
	return "approved by " + by + ", " + site.Ago(f.ApprovedAt), err
}
