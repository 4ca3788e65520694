package fakedb

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// Servers implements [registrystore.SnapshotReader] and [registrystore.ServerWriter].
type Servers struct {
	db         *Database
	uniqueURLs bool
}

var (
	_ registrystore.SnapshotReader = (*Servers)(nil)
	_ registrystore.ServerWriter   = (*Servers)(nil)
)

// NewServers returns the servers of a database. If uniqueURLs is true, a remote URL can belong to
// one server only.
func NewServers(db *Database, uniqueURLs bool) *Servers {
	return &Servers{db: db, uniqueURLs: uniqueURLs}
}

// Snapshot lets nothing change while do runs.
func (s *Servers) Snapshot(ctx context.Context, do func(ctx context.Context) error) error {
	if s.db.currentTransaction(ctx) != nil {
		return do(ctx)
	}
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	return do(context.WithValue(ctx, carrier{s.db}, &running{}))
}

// List returns a page of the records that match the query.
func (s *Servers) List(ctx context.Context, q registrystore.Query) (registrystore.Page, error) {
	found, err := s.selectRecords(ctx, func(r registry.Record) bool { return matchesSearch(q, r) })
	if err != nil {
		return registrystore.Page{}, err
	}
	slices.SortFunc(found, func(a, b registry.Record) int { return compareKey(a, b.Name.String(), b.Version.String()) })
	return cutPageAfter(found, q.Limit, q.Bytes), nil
}

// cutPageAfter returns the first page of records. A limit of 0 means the default.
func cutPageAfter(all []registry.Record, limit, most int) registrystore.Page {
	n, held := 0, 0
	for n < len(all) && (limit == 0 || n < limit) && (most == 0 || held < most) {
		held += len(all[n].Document)
		n++
	}
	return registrystore.Page{Records: all[:n:n], More: n < len(all)}
}

// Versions returns a page of the versions of a server, newest publication first.
func (s *Servers) Versions(ctx context.Context, q registrystore.VersionsQuery) (registrystore.Page, error) {
	found, err := s.selectNewestFirst(ctx, func(r registry.Record) bool {
		return r.Name == q.Name && isVisible(r, q.Deleted) && (!q.WithoutDeprecated || r.Status != registry.StatusDeprecated) && (q.Before.IsZero() || r.PublishedAt.Before(q.Before))
	})
	if err != nil {
		return registrystore.Page{}, err
	}
	return cutPageAfter(found, q.Limit, q.Bytes), nil
}

// Outline returns all versions of a server without their documents.
func (s *Servers) Outline(ctx context.Context, name registry.Name, deleted bool) ([]registry.Edition, error) {
	found, err := s.selectNewestFirst(ctx, func(r registry.Record) bool { return r.Name == name && isVisible(r, deleted) })
	if err != nil {
		return nil, err
	}
	editions := make([]registry.Edition, 0, len(found))
	for _, r := range found {
		editions = append(editions, registry.Edition{Release: r.Release, Size: len(r.Document)})
	}
	return editions, nil
}

func (s *Servers) selectNewestFirst(ctx context.Context, wanted func(registry.Record) bool) ([]registry.Record, error) {
	found, err := s.selectRecords(ctx, wanted)
	slices.SortFunc(found, func(a, b registry.Record) int { return b.PublishedAt.Compare(a.PublishedAt) })
	return found, err
}

// Version returns one version.
func (s *Servers) Version(ctx context.Context, name registry.Name, version registry.Version, deleted bool) (registry.Record, error) {
	return s.findOne(ctx, func(r registry.Record) bool { return r.Name == name && r.Version == version && isVisible(r, deleted) })
}

// Latest returns the version with the latest flag.
func (s *Servers) Latest(ctx context.Context, name registry.Name, deleted bool) (registry.Record, error) {
	return s.findOne(ctx, func(r registry.Record) bool { return r.Name == name && r.Latest && isVisible(r, deleted) })
}

// Undeprecated returns the releases that are not deprecated of the servers whose latest version is.
func (s *Servers) Undeprecated(ctx context.Context, names []registry.Name) ([]registry.Release, error) {
	found, err := s.selectRecords(ctx, func(r registry.Record) bool { return slices.Contains(names, r.Name) })
	if err != nil {
		return nil, err
	}
	wanted := map[registry.Name]bool{}
	for _, r := range found {
		wanted[r.Name] = wanted[r.Name] || r.Latest && r.Status == registry.StatusDeprecated
	}
	var releases []registry.Release
	for _, r := range found {
		if wanted[r.Name] && r.Status != registry.StatusDeprecated {
			releases = append(releases, r.Release)
		}
	}
	return releases, nil
}

// Lock returns the releases of a server. It locks nothing, because transactions run one at a time.
func (s *Servers) Lock(ctx context.Context, name registry.Name) ([]registry.Release, error) {
	if s.db.currentTransaction(ctx) == nil {
		return nil, errNoTransaction
	}
	found, err := s.selectRecords(ctx, func(r registry.Record) bool { return r.Name == name })
	releases := make([]registry.Release, 0, len(found))
	for _, r := range found {
		releases = append(releases, r.Release)
	}
	slices.SortFunc(releases, func(a, b registry.Release) int { return a.PublishedAt.Compare(b.PublishedAt) })
	return releases, err
}

// Save stores all changes. If it returns an error, it has stored no change.
func (s *Servers) Save(ctx context.Context, changes []registrystore.Change) error {
	if s.db.currentTransaction(ctx) == nil {
		return errNoTransaction
	}
	return s.db.writeTables(ctx, func(t *tables) error {
		after := maps.Clone(t.registry.versions)
		for _, c := range changes {
			if err := applyChange(after, c); err != nil {
				return err
			}
		}
		if err := s.checkGuarantees(t.registry.versions, after, changes); err != nil {
			return err
		}
		if err := t.registry.checkHidden(changes); err != nil {
			return err
		}
		t.registry.versions = after
		return nil
	})
}

// Responsible implements [registrystore.ServerWriter].
func (s *Servers) Responsible(ctx context.Context, name registry.Name, version registry.Version) (people []registry.Holder, err error) {
	if s.db.currentTransaction(ctx) == nil {
		return nil, errNoTransaction
	}
	err = s.db.readTables(ctx, func(t *tables) error {
		for key, v := range t.registry.versions {
			if key.name == name && (key.version == version || version == registry.Version{}) {
				people = append(people, v.people...)
			}
		}
		return nil
	})
	slices.Sort(people)
	return slices.Compact(people), err
}

// CheckRemotes implements [registrystore.ServerWriter].
func (s *Servers) CheckRemotes(ctx context.Context, name registry.Name, remotes []registry.RemoteURL) error {
	return s.db.readTables(ctx, func(t *tables) error {
		mine := storedVersion{Record: registry.Record{Release: registry.Release{Name: name, Status: registry.StatusActive}}, remotes: remotes}
		for _, other := range t.registry.versions {
			if other.Name == name {
				continue
			}
			if err := findConflict(mine, other, s.uniqueURLs); err != nil {
				return err
			}
		}
		return nil
	})
}

var errNoTransaction = errors.New("servers can be changed only in a transaction")

// checkHidden returns a conflict if a change shows what is in quarantine.
func (r *registryTables) checkHidden(changes []registrystore.Change) error {
	for _, c := range changes {
		for _, covering := range []registry.Version{c.Release.Version, {}} {
			if _, hidden := r.quarantined[versionKey{c.Release.Name, covering}]; hidden && c.Release.Status != registry.StatusDeleted {
				return errConflict("this version of the server is in quarantine")
			}
		}
	}
	return nil
}

func applyChange(versions map[versionKey]storedVersion, c registrystore.Change) error {
	key := versionKey{c.Release.Name, c.Release.Version}
	old, there := versions[key]
	same := there && old.PublishedAt.Equal(truncateToMicroseconds(c.Release.PublishedAt))
	switch {
	case c.Document == nil && !same:
		return fault.New(fault.NotFound, "this version of the server does not exist")
	case there && !same:
		return errConflict("this version of the server exists already")
	}
	next := storedVersion{Record: registry.Record{Release: copyRelease(c.Release), Document: old.Document}, remotes: old.remotes, people: old.people}
	next.Origin = old.Origin
	if c.Document != nil {
		next.Origin = c.Release.Origin
		next.Origin.FetchedAt = truncateToMicroseconds(next.Origin.FetchedAt)
		next.Document, next.remotes = bytes.Clone(c.Document), slices.Clone(c.Remotes)
		next.people = slices.Concat(old.people, c.People)
		slices.Sort(next.people)
		next.people = slices.Compact(next.people)
	}
	versions[key] = next
	return nil
}

func copyRelease(r registry.Release) registry.Release {
	r.StatusChangedAt, r.PublishedAt, r.UpdatedAt = truncateToMicroseconds(r.StatusChangedAt), truncateToMicroseconds(r.PublishedAt), truncateToMicroseconds(r.UpdatedAt)
	return r
}

// checkGuarantees returns a conflict if the changed servers break a guarantee of the store.
func (s *Servers) checkGuarantees(before, after map[versionKey]storedVersion, changes []registrystore.Change) error {
	for _, c := range changes {
		mine := versionKey{c.Release.Name, c.Release.Version}
		claims := s.uniqueURLs && after[mine].Origin == (registry.Origin{}) && (c.Document != nil || before[mine].Status == registry.StatusDeleted)
		for key, other := range after {
			if key == mine {
				continue
			}
			if err := findConflict(after[mine], other, claims); err != nil {
				return err
			}
		}
	}
	return nil
}

// findConflict returns a conflict between two versions of a server or, if claims is true, between
// the remote URLs of two servers.
func findConflict(mine, other storedVersion, claims bool) error {
	if mine.Name == other.Name {
		switch {
		case mine.Latest && other.Latest:
			return errConflict("another version of the server is the latest")
		case mine.PublishedAt.Equal(other.PublishedAt):
			return errConflict("another version of the server was published at the same time")
		}
		return nil
	}
	if !claims || mine.Status == registry.StatusDeleted || other.Status == registry.StatusDeleted || other.Origin != (registry.Origin{}) {
		return nil
	}
	for _, url := range mine.remotes {
		if slices.Contains(other.remotes, url) {
			return errConflict("the remote URL " + string(url) + " belongs to another server")
		}
	}
	return nil
}

// selectRecords returns the wanted records in any order.
func (s *Servers) selectRecords(ctx context.Context, wanted func(registry.Record) bool) (found []registry.Record, err error) {
	err = s.db.readTables(ctx, func(t *tables) error {
		for _, v := range t.registry.versions {
			if wanted(v.Record) {
				r := v.Record
				r.Document = bytes.Clone(r.Document)
				found = append(found, r)
			}
		}
		return nil
	})
	return found, err
}

func (s *Servers) findOne(ctx context.Context, wanted func(registry.Record) bool) (registry.Record, error) {
	found, err := s.selectRecords(ctx, wanted)
	if err != nil {
		return registry.Record{}, err
	}
	if len(found) == 0 {
		return registry.Record{}, fault.New(fault.NotFound, "this version of the server does not exist")
	}
	return found[0], nil
}

func isVisible(r registry.Record, deleted bool) bool {
	return deleted || r.Status != registry.StatusDeleted
}

func matchesSearch(q registrystore.Query, r registry.Record) bool {
	return compareKey(r, q.AfterName, q.AfterVersion) > 0 &&
		isVisible(r, q.Deleted) &&
		(!q.LatestOnly || r.Latest) &&
		(!q.WithoutDeprecated || r.Status != registry.StatusDeprecated) &&
		(q.Names == nil || slices.ContainsFunc(q.Names, func(n registry.NameRange) bool { return n.Contains(r.Name.String()) })) &&
		(q.Version == registry.Version{} || r.Version == q.Version) &&
		(q.UpdatedSince.IsZero() || r.UpdatedAt.After(q.UpdatedSince)) &&
		strings.Contains(strings.ToLower(r.Name.String()), lowerASCII(q.Search))
}

// compareKey compares a record with a position in the listing.
func compareKey(r registry.Record, name, version string) int {
	return cmp.Or(cmp.Compare(r.Name.String(), name), cmp.Compare(r.Version.String(), version))
}

// lowerASCII lowers only ASCII letters, because a name contains no others, and some of the others
// become ASCII letters when lowered.
func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}
