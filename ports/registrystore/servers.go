package registrystore

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/registry"
)

// ServerReader reads published versions. Each method sees one consistent state of the store. If
// deleted is false, versions with the status deleted are treated as missing.
type ServerReader interface {
	// List returns a page of the records that the query selects, ordered by the bytes of the name
	// and then of the version.
	List(ctx context.Context, q Query) (Page, error)
	// Versions returns a page of the versions of a server, newest publication first. For an unknown
	// server the page is empty.
	Versions(ctx context.Context, q VersionsQuery) (Page, error)
	// Outline returns all versions of a server in the order of Versions, with the sizes of their
	// documents instead of the documents.
	Outline(ctx context.Context, name registry.Name, deleted bool) ([]registry.Edition, error)
	// Version returns one version, or fault.NotFound.
	Version(ctx context.Context, name registry.Name, version registry.Version, deleted bool) (registry.Record, error)
	// Latest returns the version with the latest flag, or fault.NotFound.
	Latest(ctx context.Context, name registry.Name, deleted bool) (registry.Record, error)
	// Undeprecated returns the releases that are not deprecated, deleted ones too, of those of the
	// servers whose latest version is deprecated, in any order. There are at most MaxNames names.
	Undeprecated(ctx context.Context, names []registry.Name) ([]registry.Release, error)
}

// SnapshotReader is a ServerReader of which several reads can see the same state.
type SnapshotReader interface {
	ServerReader
	// Snapshot calls do with a context with which all reads of the store see the state of one
	// moment, whatever is changed meanwhile. do changes nothing, keeps the rules of
	// transaction.Runner, and may be called again, from the start. If ctx carries a transaction or
	// a snapshot, do joins it. Snapshot returns the error of do, fault.Unavailable when the
	// database is not available, or the context's error if the context ended first.
	Snapshot(ctx context.Context, do func(ctx context.Context) error) error
}

// MaxNames is the greatest number of servers in one call of ServerReader.Undeprecated.
const MaxNames = 100

// ServerWriter changes the versions of a server. The methods must be called inside one transaction
// (ports/transaction), Lock first.
type ServerWriter interface {
	// Lock returns the releases of a server, oldest publication first. Other transactions that lock
	// the same server wait until this one ends. A name without releases can be locked too.
	Lock(ctx context.Context, name registry.Name) ([]registry.Release, error)
	// Save stores changes of the server that Lock locked, in any order. The store itself enforces
	// these rules, and Save returns fault.Conflict, with the name of the rule, for a change that
	// breaks one:
	//   - a version exists only once;
	//   - at most one version of a server is latest at any moment;
	//   - what is in quarantine (Quarantine) is deleted;
	//   - if unique remote URLs are configured, no remote URL belongs to versions of two servers that
	//     are not deleted (contract R-32). Save checks this only for a change that stores a document
	//     or restores a deleted version, so that servers that shared a URL before the rule was turned
	//     on can still be changed otherwise. Versions with an origin, which mirrors bring, are not
	//     checked, and keep no one from using their URLs.
	Save(ctx context.Context, changes []Change) error
	// Responsible returns the people who were ever responsible for a document of a version
	// (Change), or for one of the server for the zero version, ordered.
	Responsible(ctx context.Context, name registry.Name, version registry.Version) ([]registry.Holder, error)
	// CheckRemotes returns the fault.Conflict that Save would return now if it stored a document of
	// the server with these remote URLs. It changes nothing.
	CheckRemotes(ctx context.Context, name registry.Name, remotes []registry.RemoteURL) error
}

// Change is the new state of one version.
type Change struct {
	Release  registry.Release
	Document []byte               // nil keeps the stored document
	Remotes  []registry.RemoteURL // of Document; ignored when Document is nil
	// People are responsible for Document: who published it, or created the policies by which it
	// was published. Ignored when Document is nil.
	People []registry.Holder
}

// ChangesOf returns what a lineage changed. doc is the new document of its version; nil if no
// document changes. people are responsible for it.
func ChangesOf(l *registry.Lineage, doc *registry.Document, people ...registry.Holder) []Change {
	var changes []Change
	for _, r := range l.Changes() {
		c := Change{Release: r}
		if doc != nil && r.Version == doc.Version() {
			c.Document, c.Remotes, c.People = doc.Bytes(), doc.Remotes(), people
		}
		changes = append(changes, c)
	}
	return changes
}

// Page is a part of a listing. The store adds records until the page has the maximum number of
// records, or its documents have the maximum number of bytes, which the last document may exceed.
// Unless EndName is set, a page has at least one record if the query selects any.
type Page struct {
	Records []registry.Record
	More    bool // there may be records after the page
	// EndName and EndVersion are the last position that the store has read, if it ended the page
	// early, possibly without any record. It does so when it would have to read too many records
	// that do not match, for a search, a listing of updates or one without deprecated versions
	// among thousands of servers. If they are empty, the page ends with its last record.
	EndName, EndVersion string
}

// End returns the name and version after which the next page begins. It must be called only if More
// is true.
func (p Page) End() (name, version string) {
	if p.EndName != "" {
		return p.EndName, p.EndVersion
	}
	last := p.Records[len(p.Records)-1]
	return last.Name.String(), last.Version.String()
}

// Query selects a page of the listing (contract R-11). Fields from Search to LatestOnly, and
// from Names on, do not restrict the selection if they are zero.
type Query struct {
	AfterName    string // the page begins after this name and version
	AfterVersion string
	Limit        int // maximum number of records, at least 1
	Bytes        int // maximum size of the documents; 0 for no maximum

	Search       string    // substring of the name; ASCII letters match in either case
	UpdatedSince time.Time // only versions updated after this; zero for all
	Version      registry.Version
	LatestOnly   bool
	Deleted      bool // include deleted versions
	// Names are the ranges of the names, in order and without common names, at most a few hundred;
	// nil for all names, and empty for none.
	Names []registry.NameRange
	// WithoutDeprecated leaves out deprecated versions. The latest flag stays that of all versions.
	WithoutDeprecated bool
}

// VersionsQuery selects a page of the versions of a server.
type VersionsQuery struct {
	Name    registry.Name
	Before  time.Time // only versions published before this; zero for all
	Limit   int       // maximum number of records; 0 for no maximum
	Bytes   int       // maximum size of the documents; 0 for no maximum
	Deleted bool      // include deleted versions
	// WithoutDeprecated leaves out deprecated versions.
	WithoutDeprecated bool
}

// Changes reports that published versions, views or access rules changed, so that answers made from
// them can be kept. A change is a committed change of any of them, by this process or by another one.
type Changes interface {
	// Revision reads the revision of what Changes reports. Two equal revisions of one
	// database mean that no change was committed between the reads. It returns fault.Unavailable
	// when the database is not available.
	Revision(ctx context.Context) (Revision, error)
	// ValidFor returns how long a revision may be used without another read, if Hint does not
	// change. It is at most a second.
	ValidFor() time.Duration
	// AwayAfter returns how long to wait for a revision: a database that gives none in this time
	// counts as away. It is a second or more.
	AwayAfter() time.Duration
	// Hint returns a number that is another one after a change. It is another one at once after a
	// change by this process, and as a rule within milliseconds after a change by another process.
	// It does no I/O.
	Hint() uint64
	// Removals returns the names of the servers of which this process knows that a version was
	// deleted after the position, and the present position. complete is false if there may have
	// been others. It does no I/O.
	Removals(after uint64) (names []string, position uint64, complete bool)
}

// Revision identifies a state of the published versions, the views and the access rules. It has no order, because a
// database that took over from another one may have an older state.
type Revision struct {
	Changes  int64 // another number after each change of a version
	Removals int64 // another number after each change by which a version was deleted
	Views    int64 // another number after each change of a view or of its tokens
	Access   int64 // another number after each transaction that changed access rules
}

// Owners stores who answers for servers. It is safe for concurrent use. Its methods return fault.Unavailable
// when the database is not available.
type Owners interface {
	// Of returns the owner of a server, or the zero value.
	Of(ctx context.Context, name registry.Name) (registry.Owner, error)
	// All returns the owners of all servers that have one, by the names of the servers.
	All(ctx context.Context) (map[string]registry.Owner, error)
	// Set stores the owner of a server that is there, in the transaction that the context carries, if any; the
	// zero value removes it. Of two at once the last one stays.
	Set(ctx context.Context, name registry.Name, o registry.Owner) error
}
