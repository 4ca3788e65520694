package registryrecords

import (
	"context"
	"database/sql"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/accessstore"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// listingStore implements accessstore.Servers. It reads the stored addresses of versions, and documents
// only for those of which a hash is stored.
type listingStore struct{ *Servers }

var _ accessstore.Servers = listingStore{}

func (s listingStore) Changed(ctx context.Context, after string) (c accessstore.Changes, err error) {
	err = s.Snapshot(ctx, func(ctx context.Context) error {
		var where, place string
		if err := s.db.ScanRow(ctx, database.Query{Text: s.sql.position}, &where, &place); err != nil {
			return err
		}
		before, seen, found := strings.Cut(after, "\n")
		if c = (accessstore.Changes{Position: where + "\n" + place, Known: found && before == where}); !found {
			return nil
		}
		c.Names, err = s.changedNames(ctx, seen, fewChanges+1)
		if err == nil && len(c.Names) > fewChanges {
			c.Names, err = s.changedNames(ctx, seen, math.MaxInt32)
		}
		return err
	})
	return c, err
}

// fewChanges is for how many changes the databases use the index of the changes.
const fewChanges = 1000

// changedNames returns the names that have changed after a place, at most limit of them. The limit is in the
// text, and there is no EXISTS, because PostgreSQL would otherwise read all changes, and all versions, while
// it knows too little of them.
func (s listingStore) changedNames(ctx context.Context, after string, limit int) ([]string, error) {
	return database.CollectAll(ctx, s.db, database.Query{
		Text: "SELECT c.name FROM (SELECT c.name FROM " + s.sql.changedAfter + " ORDER BY c.changed_in DESC LIMIT " +
			strconv.Itoa(limit) + `) AS c ORDER BY (
			SELECT 1 FROM versions AS v WHERE v.name = c.name AND v.status = 'deleted' LIMIT 1) IS NULL, c.name`,
		Args: []any{after},
	}, database.ScanText[string])
}

func (s listingStore) Named(ctx context.Context, names []string) ([]access.Listing, error) {
	if len(names) == 0 {
		return nil, ctx.Err()
	}
	found, err := s.listings(ctx, condition{"IN (?" + strings.Repeat(", ?", len(names)-1) + ")", anyOf(names)})
	if err != nil {
		return nil, err
	}
	known := make(map[string]bool, len(found))
	for i := range found {
		known[found[i].Name.String()] = true
	}
	for _, name := range names {
		if !known[name] {
			n, err := registry.ParseName(name)
			if err := checkRow(err); err != nil {
				return nil, err
			}
			found = append(found, access.Listing{Name: n, Deleted: true})
		}
	}
	return found, nil
}

// listingsAtOnce is how many servers are in a page.
const listingsAtOnce = 5000

func (s listingStore) Page(ctx context.Context, after string) (page []access.Listing, next string, err error) {
	var last sql.NullString
	find := database.Query{
		Text: "SELECT max(name) FROM (SELECT name FROM servers WHERE name > ? ORDER BY name LIMIT ?) AS s",
		Args: []any{after, listingsAtOnce}, Fixed: true,
	}
	if err := s.db.ScanRow(ctx, find, &last); err != nil || last.String == "" {
		return nil, "", err
	}
	page, err = s.listings(ctx, condition{"BETWEEN ? AND ?", []any{after + "\x01", last.String}})
	return page, last.String, err
}

// What a row says of a server: it has versions that are not deleted, perhaps with an address, or others, or
// there is an entry in quarantine.
const (
	rowListed = iota
	rowDeleted
	rowQuarantined
)

// listingRows are the rows of the servers whose names meet a condition.
func listingRows(names condition) database.Query {
	return database.Query{
		Text: `SELECT v.name AS name, r.url, min(CASE WHEN v.status = 'deleted' THEN 1 ELSE 0 END)
			FROM versions AS v LEFT JOIN remotes AS r ON r.name = v.name AND r.version = v.version
			WHERE v.name ` + names.text + ` GROUP BY v.name, r.url
			UNION ALL SELECT DISTINCT name, CAST(NULL AS text), 2 FROM quarantine WHERE name ` + names.text + " ORDER BY 1, 2",
		Args: slices.Concat(names.args, names.args),
	}
}

// storedListing is a server as its rows have it.
type storedListing struct {
	access.Listing

	listed bool // there are versions that are not deleted
	long   bool // of some address only the hash is stored
}

// listings returns the servers whose names meet a condition, ordered by name.
func (s listingStore) listings(ctx context.Context, names condition) ([]access.Listing, error) {
	stored, err := database.Collect(ctx, s.db, listingRows(names), collectListings)
	if err != nil {
		return nil, err
	}
	all := make([]access.Listing, len(stored))
	for i := range stored {
		l := &stored[i]
		l.Deleted, l.Quarantined = !l.listed && !l.Quarantined, !l.listed && l.Quarantined
		if l.long {
			if err := s.readAddresses(ctx, &l.Listing); err != nil {
				return nil, err
			}
		}
		all[i] = l.Listing
	}
	return all, s.readTools(ctx, all, names)
}

func collectListings(rows *sql.Rows) (all []storedListing, err error) {
	for rows.Next() {
		var name string
		var url sql.NullString
		var kind int
		if err := rows.Scan(&name, &url, &kind); err != nil {
			return nil, err
		}
		if n := len(all); n == 0 || all[n-1].Name.String() != name {
			parsed, err := registry.ParseName(name)
			if err := checkRow(err); err != nil {
				return nil, err
			}
			all = append(all, storedListing{Listing: access.Listing{Name: parsed}})
		}
		l := &all[len(all)-1]
		l.listed, l.Quarantined = l.listed || kind == rowListed, l.Quarantined || kind == rowQuarantined
		l.long = l.long || strings.HasPrefix(url.String, hashed)
		switch {
		case !url.Valid:
		case kind == rowListed:
			l.Remotes = append(l.Remotes, url.String)
		default:
			l.Withdrawn = append(l.Withdrawn, url.String)
		}
	}
	return all, nil
}

// addressBytes is the size of the documents of one server that are read at once.
const addressBytes = 4 << 20

// readAddresses reads the addresses of a server from its documents.
func (s listingStore) readAddresses(ctx context.Context, l *access.Listing) error {
	l.Remotes, l.Withdrawn = nil, nil
	gone := map[string]bool{} // by address
	q := registrystore.VersionsQuery{Name: l.Name, Bytes: addressBytes, Deleted: true}
	for more := true; more; {
		page, err := s.Versions(ctx, q)
		if err != nil {
			return err
		}
		for i := range page.Records {
			r := &page.Records[i]
			for _, url := range registry.RemotesOf(r.Document) {
				before, known := gone[string(url)]
				gone[string(url)] = r.Status == registry.StatusDeleted && (before || !known)
			}
		}
		if more = page.More; more {
			q.Before = page.Records[len(page.Records)-1].PublishedAt
		}
	}
	for _, url := range slices.Sorted(maps.Keys(gone)) {
		if gone[url] {
			l.Withdrawn = append(l.Withdrawn, url)
		} else {
			l.Remotes = append(l.Remotes, url)
		}
	}
	return nil
}

// Outline implements registrystore.ServerReader. The databases return the size of a document
// without reading it.
func (s *Servers) Outline(ctx context.Context, name registry.Name, deleted bool) ([]registry.Edition, error) {
	text := "SELECT " + factsOfVersion + ", " + s.sql.documentSize + " FROM versions AS v WHERE " +
		visibleOnly("v.name = ?", deleted) + newestFirst
	find := database.Query{Text: text, Args: []any{name.String()}, Fixed: true}
	return database.CollectAll(ctx, s.db, find, func(row *sql.Rows) (e registry.Edition, err error) {
		var facts string
		if err := row.Scan(&facts, &e.Size); err != nil {
			return e, err
		}
		e.Release, err = parseFacts(facts)
		return e, err
	})
}

// Undeprecated implements registrystore.ServerReader.
func (s *Servers) Undeprecated(ctx context.Context, names []registry.Name) ([]registry.Release, error) {
	if len(names) == 0 {
		return nil, ctx.Err()
	}
	args := anyOf(each.Texts(names))
	text := "SELECT " + factsOfVersion + " FROM versions AS v WHERE " + notDeprecated + ` AND v.name IN (
		SELECT l.name FROM versions AS l WHERE l.is_latest AND l.status = 'deprecated' AND l.name IN (?` +
		strings.Repeat(", ?", len(names)-1) + "))"
	return database.CollectAll(ctx, s.db, database.Query{Text: text, Args: args, Fixed: len(names) == 1}, scanRelease)
}

// scanRelease scans a row that has factsOfVersion.
func scanRelease(row *sql.Rows) (r registry.Release, err error) {
	var facts string
	if err := row.Scan(&facts); err != nil {
		return r, err
	}
	return parseFacts(facts)
}

func (s listingStore) AddCalls(ctx context.Context, day int64, all []accessstore.Calls) error {
	if len(all) == 0 {
		return ctx.Err()
	}
	var args []any
	for _, one := range all {
		args = append(args, day, one.Server, one.All, one.Denied)
	}
	// The old days go first: an error means that nothing was added, and the caller adds it again.
	if _, err := s.db.Exec(ctx, "DELETE FROM server_calls WHERE day <= ?", day-accessstore.KeptDays); err != nil {
		return err
	}
	_, err := s.db.Exec(ctx, "INSERT INTO server_calls (day, name, calls, denied) VALUES (?, ?, ?, ?)"+strings.Repeat(", (?, ?, ?, ?)", len(all)-1)+
		" ON CONFLICT (day, name) DO UPDATE SET calls = server_calls.calls + EXCLUDED.calls, denied = server_calls.denied + EXCLUDED.denied", args...)
	return err
}

func (s listingStore) CallsOf(ctx context.Context, server string, from int64) (accessstore.Calls, error) {
	args := []any{server}
	for day := range int64(accessstore.KeptDays) { // each is found by the key
		args = append(args, from+day)
	}
	q := database.Query{Text: "SELECT coalesce(sum(calls), 0), coalesce(sum(denied), 0) FROM server_calls WHERE name = ? AND day IN (?" +
		strings.Repeat(", ?", accessstore.KeptDays-1) + ")", Args: args, Fixed: true}
	found := accessstore.Calls{Server: server}
	return found, s.db.ScanRow(ctx, q, &found.All, &found.Denied)
}
