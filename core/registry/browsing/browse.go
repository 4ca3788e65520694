// Package browsing holds the use cases that read the registry: list and search, all versions of a
// server, one version. It validates requests and keeps the position in a listing. It changes
// nothing and needs no permission.
package browsing

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/page"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/view"
	"github.com/tollgate-dev/tollgate/core/registry/viewing"
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
	return &Browser{servers: viewing.NewReader(b.servers, v), cursors: b.cursors, view: v.Name}
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
	limit, err := ParseLimit(q.Limit)
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
		return registry.Record{}, errNoServer()
	}
	if version == registry.LatestAlias {
		return b.servers.Latest(ctx, name, deleted)
	}
	exact, err := registry.ParseVersion(version)
	if err != nil {
		return registry.Record{}, errNoServer()
	}
	return b.servers.Version(ctx, name, exact, deleted)
}

func errNoServer() error { return fault.New(fault.NotFound, "server not found") }

// The records, and the bytes of their documents, that EachVersion has in memory at once.
const (
	eachRecords = 100
	eachBytes   = 4 << 20
)

// EachVersion calls visit with every version of every server, including deleted ones, ordered by
// name, then version, both bytewise. Each page of records is read separately, so that versions
// published meanwhile may be missing. An error of visit ends it and is returned.
func EachVersion(ctx context.Context, servers registrystore.ServerReader, visit func(registry.Record) error) error {
	q := registrystore.Query{Limit: eachRecords, Bytes: eachBytes, Deleted: true}
	for {
		found, err := servers.List(ctx, q)
		if err != nil {
			return err
		}
		for _, r := range found.Records {
			if err := visit(r); err != nil {
				return err
			}
		}
		if !found.More {
			return nil
		}
		q.AfterName, q.AfterVersion = found.End()
	}
}
