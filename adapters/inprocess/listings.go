package inprocess

import (
	"context"
	"slices"
	"sync"

	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/browsing"
	"github.com/tollgate-dev/tollgate/core/toolserver"
	"github.com/tollgate-dev/tollgate/ports/accessstore"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// ListingPorts are the dependencies of the listings. All fields are required.
type ListingPorts struct {
	Servers    registrystore.SnapshotReader
	Marks      registrystore.ServerMarks
	Quarantine registrystore.Quarantine
}

// NewListings returns the servers of the registry for decisions about calls.
func NewListings(p ListingPorts) accessstore.Servers { return &listingReader{ports: p} }

// listingReader implements accessstore.Servers. It keeps what it has read, and reads only the servers
// that have changed since.
type listingReader struct {
	ports ListingPorts

	mu    sync.Mutex
	known []knownListing // ordered by name
}

// knownListing is a server that has versions.
type knownListing struct {
	registrystore.ServerMark

	name    toolserver.Name
	remotes []string // of the versions that are listed
	gone    []string // of those that are in quarantine or deleted, and of no others
	listed  bool     // there are versions that are listed
}

// maxSingle is how many servers are read one by one; of more, all are read.
const maxSingle = 500

// Listings implements [accessstore.Servers].
func (l *listingReader) Listings(ctx context.Context) (all []access.Listing, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	err = l.ports.Servers.Snapshot(ctx, func(ctx context.Context) error {
		next, err := l.read(ctx)
		if err != nil {
			return err
		}
		hidden, err := l.quarantined(ctx)
		if err == nil {
			l.known, all = next, listingsOf(next, hidden)
		}
		return err
	})
	return all, err
}

// listingsOf returns the servers that decisions need to know: those that are listed or in quarantine, and
// the addresses of what is deleted. hidden are those of which something is in quarantine.
func listingsOf(known []knownListing, hidden map[toolserver.Name]bool) (all []access.Listing) {
	for i := range known {
		k := &known[i]
		quarantined := !k.listed && hidden[k.name]
		if k.listed || quarantined || len(k.gone) > 0 {
			all = append(all, access.Listing{
				Name: k.name, Remotes: k.remotes, Withdrawn: k.gone, Quarantined: quarantined, Deleted: !k.listed && !quarantined,
			})
		}
	}
	return all
}

// read returns the servers as they are now.
func (l *listingReader) read(ctx context.Context) ([]knownListing, error) {
	marks, err := l.ports.Marks.Marks(ctx)
	if err != nil {
		return nil, err
	}
	next, changed, rest := make([]knownListing, len(marks)), []*knownListing{}, l.known
	for i, mark := range marks {
		for len(rest) > 0 && rest[0].Name < mark.Name {
			rest = rest[1:]
		}
		if len(rest) > 0 && rest[0].ServerMark == mark {
			next[i] = rest[0]
			continue
		}
		next[i].ServerMark = mark
		changed = append(changed, &next[i])
	}
	if len(changed) > maxSingle {
		return next, l.readAll(ctx, changed)
	}
	for _, k := range changed {
		if err := l.readOne(ctx, k); err != nil {
			return nil, err
		}
	}
	return next, nil
}

// add adds a version of the server.
func (k *knownListing) add(r *registry.Record) {
	k.name = r.Name
	gone := r.Status == registry.StatusDeleted
	k.listed = k.listed || !gone
	for _, u := range registry.RemotesOf(r.Document) {
		url := string(u)
		at, listed := slices.BinarySearch(k.remotes, url)
		was, known := slices.BinarySearch(k.gone, url)
		switch {
		case gone && !listed && !known:
			k.gone = slices.Insert(k.gone, was, url)
		case !gone && !listed:
			k.remotes = slices.Insert(k.remotes, at, url)
			if known {
				k.gone = slices.Delete(k.gone, was, was+1)
			}
		}
	}
}

// pageBytes is the size of the documents of one server that are read at once.
const pageBytes = 4 << 20

// readOne reads the versions of a server.
func (l *listingReader) readOne(ctx context.Context, k *knownListing) error {
	name, err := registry.ParseName(k.Name)
	if err != nil {
		return err
	}
	q := registrystore.VersionsQuery{Name: name, Bytes: pageBytes, Deleted: true}
	for {
		page, err := l.ports.Servers.Versions(ctx, q)
		if err != nil {
			return err
		}
		for i := range page.Records {
			k.add(&page.Records[i])
		}
		if !page.More {
			return nil
		}
		q.Before = page.Records[len(page.Records)-1].PublishedAt
	}
}

// readAll reads the versions of many servers, which are ordered by name.
func (l *listingReader) readAll(ctx context.Context, changed []*knownListing) error {
	return browsing.EachVersion(ctx, l.ports.Servers, func(r registry.Record) error {
		name := r.Name.String()
		for len(changed) > 0 && changed[0].Name < name {
			changed = changed[1:]
		}
		if len(changed) > 0 && changed[0].Name == name {
			changed[0].add(&r)
		}
		return nil
	})
}

// maxEntries is how many entries of quarantine are read at once.
const maxEntries = 1000

// quarantined returns the servers of which something is in quarantine.
func (l *listingReader) quarantined(ctx context.Context) (map[toolserver.Name]bool, error) {
	everything, err := registry.ParsePattern(toolserver.Everything)
	if err != nil {
		return nil, err
	}
	names, q := map[toolserver.Name]bool{}, registrystore.QuarantineQuery{Patterns: []registry.Pattern{everything}, Limit: maxEntries}
	for {
		entries, err := l.ports.Quarantine.List(ctx, q)
		if err != nil {
			return nil, err
		}
		for i := range entries {
			names[entries[i].Name] = true
		}
		if len(entries) < maxEntries {
			return names, nil
		}
		last := &entries[len(entries)-1]
		q.AfterName, q.AfterVersion = last.Name.String(), last.Version.String()
	}
}
