package browsing

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// How the catalogue is made. A search makes what changed a moment ago; it leaves more than that,
// after an upgrade or an import, to Run. A transaction with 250 servers takes a fifth less of the
// processor for each than one with 50, and one with 1,000 gains little more: meanwhile publications
// of its servers wait, on SQLite all of them.
const (
	indexedBySearch = 50  // servers that a search puts into the catalogue in one step
	indexSteps      = 4   // steps of a search
	indexedByRun    = 250 // servers that Run puts into the catalogue in one transaction
)

// catchUp puts the servers that changed a moment ago into the catalogue, and returns what it lacks
// after that. A database that cannot be written does not fail a search: the catalogue stays as it is.
func (f *Finder) catchUp(ctx context.Context) (registrystore.Progress, error) {
	p, err := f.ports.Catalogue.Progress(ctx)
	if err != nil || p.Waiting == 0 || p.Waiting > indexSteps*indexedBySearch {
		return p, err
	}
	for range indexSteps {
		more, err := f.ports.Catalogue.Index(ctx, indexedBySearch)
		if err != nil {
			return p, ctx.Err() // Run reports it
		}
		if !more {
			return registrystore.Progress{}, nil
		}
	}
	return f.ports.Catalogue.Progress(ctx)
}

// search returns a page of what the catalogue finds. While servers wait for their place in it, those
// whose names have the words are found, too, unless it finds many without them.
func (f *Finder) search(
	ctx context.Context, s registrystore.Search, making registrystore.Progress,
) (registrystore.Finding, error) {
	if making.Waiting == 0 {
		return f.ports.Catalogue.Find(ctx, s)
	}
	all := s
	all.Offset, all.Limit = 0, registrystore.MaxFound
	found, err := f.ports.Catalogue.Find(ctx, all)
	if err != nil {
		return registrystore.Finding{}, err
	}
	if found.More || found.Total > len(found.Servers) {
		return f.ports.Catalogue.Find(ctx, s)
	}
	if err := f.addWaiting(ctx, s, &found); err != nil {
		return registrystore.Finding{}, err
	}
	found.Total = len(found.Servers)
	begin := min(s.Offset, found.Total)
	found.Servers = found.Servers[begin:min(begin+s.Limit, found.Total)]
	return found, nil
}

// addWaiting adds servers that the search of the API finds to what the catalogue has found, in the
// order of the search.
func (f *Finder) addWaiting(ctx context.Context, s registrystore.Search, found *registrystore.Finding) error {
	known := make(map[registry.Name]bool, len(found.Servers))
	for _, server := range found.Servers {
		known[server.Name] = true
	}
	q := registrystore.Query{
		LatestOnly: true, Deleted: s.Deleted, Names: s.Names, Limit: registrystore.MaxFound, Bytes: pageBytes,
	}
	for _, w := range s.Words {
		if registry.CanBeInName(w) && len(w) > len(q.Search) {
			q.Search = w
		}
	}
	page, err := listMatching(ctx, f.ports.Servers, q, func(r *registry.Record) bool {
		summary := registry.SummaryOf(*r)
		if known[r.Name] || !selects(s, r.Name, summary) {
			return false
		}
		found.Servers = append(found.Servers, registrystore.FoundServer{Release: r.Release, Summary: summary})
		return true
	})
	found.More = page.More
	slices.SortFunc(found.Servers, func(a, b registrystore.FoundServer) int {
		first := 0
		switch s.Order {
		case registrystore.ByFit:
			first = cmp.Compare(matchOf(s, a), matchOf(s, b))
		case registrystore.ByUpdated:
			first = b.UpdatedAt.Compare(a.UpdatedAt)
		case registrystore.ByNewest:
			first = b.PublishedAt.Compare(a.PublishedAt)
		}
		return cmp.Or(first, strings.Compare(a.Name.String(), b.Name.String()))
	})
	return err
}

func matchOf(s registrystore.Search, f registrystore.FoundServer) registry.Match {
	return registry.MatchOf(f.Name.String(), strings.ToLower(f.Title), s.Words)
}

// selects reports whether a search selects a server of its ranges of names.
func selects(s registrystore.Search, name registry.Name, summary registry.Summary) bool {
	text := strings.ToLower(name.String() + "\n" + summary.Title + "\n" + summary.Description)
	return !slices.ContainsFunc(s.Words, func(w string) bool { return !strings.Contains(text, w) }) &&
		!slices.ContainsFunc(s.Facets, func(f registry.Facet) bool { return !slices.Contains(summary.Facets, f) }) &&
		!slices.ContainsFunc(s.Except, func(r registry.NameRange) bool { return r.Contains(name.String()) })
}
