// Package browsing holds the use cases that read the registry: list and search, all versions of a
// server, one version. It validates requests and keeps the position in a listing. It changes
// nothing and needs no permission.
package browsing

import (
	"context"
	"slices"
	"strconv"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/page"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/history"
	"github.com/tollgate-dev/tollgate/core/registry/view"
	"github.com/tollgate-dev/tollgate/core/registry/viewreader"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// Browser reads the registry. It is safe for concurrent use.
type Browser struct {
	servers registrystore.SnapshotReader
	cursors *page.Sealer
	view    view.Name // in which its cursors are good; empty for the registry itself
}

// New returns a browser. All instances need the same key in their sealer, so that each of them
// accepts the cursors of the others (contract R-13).
func New(servers registrystore.SnapshotReader, cursors *page.Sealer) *Browser {
	return &Browser{servers: servers, cursors: cursors}
}

// In returns a browser of the servers of a view (contract C-31, C-32). Its cursors are good in this
// view only (contract C-33).
func (b *Browser) In(v view.View) *Browser {
	return &Browser{servers: viewreader.New(b.servers, v), cursors: b.cursors, view: v.Name}
}

// Page is one page of the listing.
type Page struct {
	Records    []registry.Record
	NextCursor string // empty on the last page
}

// pageBytes limits the documents of a page: it ends early, with the document that reaches this
// number of bytes. A few documents of the greatest size fit in a page, and a hundred of the usual
// size.
const pageBytes = 4 << 20

// List returns a page of the versions that the query selects, ordered by name, then version, both
// bytewise. A page may have fewer records than the limit, or no records: where documents are large,
// and where too many other records would have to be read. Only an empty NextCursor marks the
// last page. List returns fault.Invalid, with the name of the parameter, for a parameter that
// breaks a rule.
func (b *Browser) List(ctx context.Context, q Query) (Page, error) {
	limit, err := page.ParseLimit(q.Limit)
	if err != nil {
		return Page{}, err
	}
	from, err := b.startPosition(q)
	if err != nil {
		return Page{}, err
	}
	selection, possible := from.filters.storeQuery()
	if !possible {
		return Page{Records: []registry.Record{}}, nil
	}
	selection.AfterName, selection.AfterVersion = from.name, from.version
	selection.Limit, selection.Bytes = limit, pageBytes
	found, err := from.filters.traits.list(ctx, b.servers, selection)
	if err != nil || !found.More {
		return Page{Records: found.Records}, err
	}
	name, version := found.End()
	next := position{b.view, from.filters, name, version}
	return Page{found.Records, b.cursors.Seal(next.encode())}, nil
}

// Versions returns all versions of a server. includeDeleted is true, false or empty, which is
// false; anything else is fault.Invalid. It returns fault.NotFound when the server does not exist,
// or has only deleted versions and they are not included (contract R-18).
func (b *Browser) Versions(ctx context.Context, serverName, includeDeleted string) (history.History, error) {
	deleted, err := parseFlag("include_deleted", includeDeleted)
	if err != nil {
		return history.History{}, err
	}
	name, err := registry.ParseName(serverName)
	if err != nil {
		return history.History{}, history.ErrNoServer()
	}
	return history.AllVersions(ctx, b.servers, name, deleted)
}

// Editions returns all versions of a server without their documents, newest publication first,
// including deleted ones. It returns fault.NotFound when the server does not exist.
func (b *Browser) Editions(ctx context.Context, serverName string) ([]registry.Edition, error) {
	name, err := registry.ParseName(serverName)
	if err != nil {
		return nil, history.ErrNoServer()
	}
	editions, err := b.servers.Outline(ctx, name, true)
	if err == nil && len(editions) == 0 {
		err = history.ErrNoServer()
	}
	return editions, err
}

// Version returns one version of a server, or the latest for "latest". includeDeleted is as in
// Versions. It returns fault.NotFound when the version is missing, or deleted and not included.
func (b *Browser) Version(ctx context.Context, serverName, version, includeDeleted string) (registry.Record, error) {
	deleted, err := parseFlag("include_deleted", includeDeleted)
	if err != nil {
		return registry.Record{}, err
	}
	record, err := b.readVersion(ctx, serverName, version, deleted)
	if fault.Is(err, fault.NotFound) {
		return registry.Record{}, fault.New(fault.NotFound, "server version not found")
	}
	return record, err
}

// readVersion reads one version, or the latest, from the store.
func (b *Browser) readVersion(ctx context.Context, serverName, version string, deleted bool) (registry.Record, error) {
	name, err := registry.ParseName(serverName)
	if err != nil {
		return registry.Record{}, history.ErrNoServer()
	}
	if version == registry.LatestAlias {
		return b.servers.Latest(ctx, name, deleted)
	}
	exact, err := registry.ParseVersion(version)
	if err != nil {
		return registry.Record{}, history.ErrNoServer()
	}
	return b.servers.Version(ctx, name, exact, deleted)
}

// Own finds the servers that a person may change. It is safe for concurrent use.
type Own struct {
	servers *Browser
	grants  registrystore.Grants
}

// NewOwn returns an Own.
func NewOwn(servers registrystore.SnapshotReader, cursors *page.Sealer, g registrystore.Grants) *Own {
	return &Own{New(servers, cursors), g}
}

// ownView is the name of the view of one's own servers in cursors. No view of an operator has it.
const ownView = "own servers"

// List returns a page of the latest versions, deleted ones too, of the servers for which a person has
// a grant to publish or edit. It returns fault.Invalid for a cursor of another list.
func (o *Own) List(ctx context.Context, person registry.Holder, cursor string) (Page, error) {
	grants, err := o.grants.Of(ctx, person)
	if err != nil {
		return Page{}, err
	}
	of := view.View{Name: ownView, Deprecated: view.Show}
	of.Include = changeable(grants)
	if len(of.Include) == 0 { // which would be all servers
		return Page{}, nil
	}
	return o.servers.In(of).List(ctx, Query{
		Cursor: cursor, Version: registry.LatestAlias, IncludeDeleted: "true", Limit: strconv.Itoa(page.DefaultLimit),
	})
}

// changeable returns the patterns of the servers that a person with these grants may change.
func changeable(grants []registry.Grant) (all []registry.Pattern) {
	for _, g := range grants {
		if (g.Action == registry.ActionPublish || g.Action == registry.ActionEdit) && !slices.Contains(all, g.Pattern) {
			all = append(all, g.Pattern)
		}
	}
	return all
}
