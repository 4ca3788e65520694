package browsing

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/fields"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/view"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// collect restricts a search to the servers of a collection, whose page is cut when they are
// in its order.
func (f *Finder) collect(ctx context.Context, s *registrystore.Search, name string) (*view.Collection, error) {
	if name == "" {
		return nil, nil //nolint:nilnil // all servers are searched
	}
	c, err := view.Collection{}, fields.CheckName(name)
	if err == nil {
		c, err = f.ports.Collections.Get(ctx, view.CollectionName(name))
	}
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Invalid) {
		err = invalidParameter("collection", "must be the name of a collection")
	}
	if err != nil {
		return nil, err
	}
	s.Names = c.Ranges(view.MaxCollected, s.Names)
	if isArranged(*s) {
		s.Offset, s.Limit = 0, view.MaxCollected
	}
	return &c, nil
}

// isArranged reports whether the servers of a collection come in its order: without words and another order.
func isArranged(s registrystore.Search) bool {
	return s.Order == registrystore.ByFit && len(s.Words) == 0
}

// arrange returns those of the servers that a collection has, in its order.
func arrange(c *view.Collection, servers []registrystore.FoundServer) (all []registrystore.FoundServer) {
	for _, server := range servers {
		if c.Index(server.Name) >= 0 {
			all = append(all, server)
		}
	}
	slices.SortFunc(all, func(a, b registrystore.FoundServer) int { return cmp.Compare(c.Index(a.Name), c.Index(b.Name)) })
	return all
}

// Shelf is a collection with the first of its servers.
type Shelf struct {
	view.Collection

	First []registrystore.FoundServer
}

// The bounds of what a page shows of collections.
const (
	maxShelves = 6
	onShelf    = 4 // servers
	lookedAt   = 8 // servers of a collection, of which some may not be listed
)

// Shelves returns the first collections that have servers, each with the first of these, and the names of
// all, by two reads. Whether the caller may read the registry is not checked.
func (f *Finder) Shelves(ctx context.Context) (shelves []Shelf, names []string, err error) {
	all, err := f.ports.Collections.List(ctx, "", view.CollectionKind.Most)
	if err != nil || len(all) == 0 {
		return nil, nil, err
	}
	s := registrystore.Search{Order: registrystore.ByFit, Limit: maxShelves * lookedAt}
	for i := range all {
		if names = append(names, string(all[i].Name)); i < maxShelves {
			s.Names = append(s.Names, all[i].Ranges(lookedAt, nil)...)
		}
	}
	slices.SortFunc(s.Names, func(a, b registry.NameRange) int { return strings.Compare(a.From, b.From) })
	s.Names = slices.Compact(s.Names)
	found, err := f.ports.Catalogue.Find(ctx, s)
	for i := range all[:min(len(all), maxShelves)] {
		if first := arrange(&all[i], found.Servers); len(first) > 0 {
			shelves = append(shelves, Shelf{all[i], first[:min(len(first), onShelf)]})
		}
	}
	return shelves, names, err
}
