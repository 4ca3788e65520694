// Package serverstore is the port to the records of published server versions.
// Which documents may be published, and which version is the latest, is for
// the core to say.
package serverstore

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/registry"
)

// Reader reads published versions. All methods are safe for concurrent use,
// each sees one consistent state of the store, and each returns
// fault.Unavailable when the database is away. Where deleted is false,
// versions of status deleted are as if they were not there.
type Reader interface {
	// List returns a page of the records that the query selects, ordered by
	// name, then version, both bytewise.
	List(ctx context.Context, q Query) (Page, error)
	// Versions returns a page of the versions of a server, newest publication
	// first. No such server is an empty page.
	Versions(ctx context.Context, q VersionsQuery) (Page, error)
	// Outline returns all versions of a server in the order of Versions, with
	// the sizes of their documents instead of these.
	Outline(ctx context.Context, name registry.Name, deleted bool) ([]registry.Edition, error)
	// Version returns one version, or fault.NotFound.
	Version(ctx context.Context, name registry.Name, version registry.Version, deleted bool) (registry.Record, error)
	// Latest returns the version that holds the latest flag, or
	// fault.NotFound.
	Latest(ctx context.Context, name registry.Name, deleted bool) (registry.Record, error)
}

// Writer changes the versions of a server. Both methods are called inside one
// transaction (ports/transaction), Lock first.
type Writer interface {
	// Lock returns the releases of a server, oldest publication first, and
	// keeps every other transaction that locks the same server waiting until
	// this one ends. It also locks a name that has no releases yet.
	Lock(ctx context.Context, name registry.Name) ([]registry.Release, error)
	// Save stores changes to the server that Lock locked, in any order of theirs. The store itself
	// guarantees, whatever a caller does wrong, that a version exists once, that at most one
	// version of a server is latest at any moment, and, where unique remote URLs are asked for,
	// that no document is stored with, and no version leaves the status deleted for, a URL that a
	// version of another server has that is not deleted. Other changes ask for no URL: those that
	// servers shared before the rule was turned on are in nobody's way (contract R-32).
	// fault.Conflict names the rule that was broken.
	Save(ctx context.Context, changes []Change) error
}

// Change is the new state of one version.
type Change struct {
	Release  registry.Release
	Document []byte               // nil leaves the stored document as it is
	Remotes  []registry.RemoteURL // of Document; counts only when that is set
}

// Page is a part of a listing. A record is in it as long as the page has fewer
// than the most records that were asked for, and the documents before it have
// fewer bytes than were asked for. So a page has one record at least, if there
// is any, and no store holds more than the bound and one document.
type Page struct {
	Records []registry.Record
	More    bool // there may be records behind the page
	// EndName and EndVersion are where a page of a listing ends that a store ends
	// early, perhaps without any record, since it would have to look at too many
	// others: a search, or a listing of updates, on a store of thousands of
	// servers. Empty = the page ends with its last record.
	EndName, EndVersion string
}

// End returns where the next page of a listing begins: behind this name and
// version. There must be one.
func (p Page) End() (name, version string) {
	if p.EndName != "" {
		return p.EndName, p.EndVersion
	}
	last := p.Records[len(p.Records)-1]
	return last.Name.String(), last.Version.String()
}

// Query selects a page of the listing (contract R-11).
type Query struct {
	AfterName    string // the page begins behind this name and version; empty = at the start
	AfterVersion string
	Limit        int // most records, 1 and more
	Bytes        int // of documents, with which the page ends; 0 = however many

	Search       string           // case-insensitive (Unicode simple folding not required beyond ASCII) substring of the name; empty = all
	UpdatedSince time.Time        // strictly after; zero = all
	Version      registry.Version // exact; zero = all
	LatestOnly   bool
	Deleted      bool // deleted versions too
}

// VersionsQuery selects a page of the versions of a server.
type VersionsQuery struct {
	Name    registry.Name
	Before  time.Time // the page begins with the newest publication before this; zero = with the newest
	Limit   int       // most records; 0 = however many
	Bytes   int       // of documents, with which the page ends; 0 = however many
	Deleted bool      // deleted versions too
}
