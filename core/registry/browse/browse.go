// Package browse holds the use cases that read the registry: list and search,
// all versions of a server, one version. It checks what a request asks for
// and keeps the place in a listing; it changes nothing and asks for no
// permission.
package browse

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/page"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/serverstore"
)

// Browser reads the registry. It is safe for concurrent use.
type Browser struct {
	servers serverstore.Reader
	cursors *page.Sealer
}

// New returns a browser. All instances need the same key in their sealer, so that a cursor is good
// on each of them (contract R-13).
func New(servers serverstore.Reader, cursors *page.Sealer) *Browser {
	return &Browser{servers, cursors}
}

// Page is one page of the listing.
type Page struct {
	Records    []registry.Record
	NextCursor string // empty on the last page
}

// pageBytes bounds the documents of a page: it ends early, with the document
// that reaches this many bytes. A few documents of the greatest size fit, and a
// hundred of the usual.
const pageBytes = 4 << 20

// List returns a page of the versions that the query selects, ordered by name,
// then version, both bytewise. It has fewer than the limit where documents are
// large, and fewer, or none, where the store would have to look at too many others
// for more; only NextCursor tells whether it is the last. A parameter that breaks
// a rule is fault.Invalid, and the sentence names it.
func (b *Browser) List(ctx context.Context, q Query) (Page, error) {
	limit, err := parseLimit(q.Limit)
	if err != nil {
		return Page{}, err
	}
	from, err := b.resume(q)
	if err != nil {
		return Page{}, err
	}
	selection, possible := from.filters.query()
	if !possible {
		return Page{Records: []registry.Record{}}, nil
	}
	selection.AfterName, selection.AfterVersion = from.name, from.version
	selection.Limit, selection.Bytes = limit, pageBytes
	found, err := b.servers.List(ctx, selection)
	if err != nil || !found.More {
		return Page{Records: found.Records}, err
	}
	name, version := found.End()
	next := position{from.filters, name, version}
	return Page{found.Records, b.cursors.Seal(next.bytes())}, nil
}

// Version returns one version of a server, or the latest for "latest".
// includeDeleted as of Versions. fault.NotFound when it is missing, or deleted
// and not asked for.
func (b *Browser) Version(ctx context.Context, serverName, version, includeDeleted string) (registry.Record, error) {
	deleted, err := parseFlag("include_deleted", includeDeleted)
	if err != nil {
		return registry.Record{}, err
	}
	record, err := b.version(ctx, serverName, version, deleted)
	if fault.Is(err, fault.NotFound) {
		return registry.Record{}, fault.New(fault.NotFound, "", "server version not found")
	}
	return record, err
}

func (b *Browser) version(ctx context.Context, serverName, version string, deleted bool) (registry.Record, error) {
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

func errNoServer() error { return fault.New(fault.NotFound, "", "server not found") }
