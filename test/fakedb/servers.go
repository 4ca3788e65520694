package fakedb

import (
	"cmp"
	"context"
	"errors"
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

var errNoTransaction = errors.New("servers can be changed only in a transaction")

// NewServers returns the servers of a database. If uniqueURLs is true, a remote URL can belong to
// one server only.
func NewServers(db *Database, uniqueURLs bool) *Servers { return &Servers{db, uniqueURLs} }

// Snapshot implements [registrystore.SnapshotReader]: nothing changes while do runs.
func (s *Servers) Snapshot(ctx context.Context, do func(ctx context.Context) error) error {
	return s.db.run(ctx, do)
}

// List implements [registrystore.ServerReader].
func (s *Servers) List(ctx context.Context, q registrystore.Query) (registrystore.Page, error) {
	found, err := s.db.versions.list(ctx, func(v versionRow) bool { return matchesSearch(q, v.Record) },
		func(a, b versionRow) int {
			return comparePosition(a.Name, a.Version, b.Name.String(), b.Version.String())
		})
	return cutRecords(found, q.Limit, q.Bytes), err
}

// cutRecords returns the first page of records. A limit of 0 means no limit.
func cutRecords(found []versionRow, limit, size int) registrystore.Page {
	n := countUntil(found, limit, size, func(v versionRow) int { return len(v.Document) })
	page := registrystore.Page{More: n < len(found)}
	for _, v := range found[:n] {
		page.Records = append(page.Records, v.Record)
	}
	return page
}

// countUntil returns how many rows make up a page, which ends with the row that reaches a size. A
// limit of 0 means no limit.
func countUntil[R any](rows []R, limit, size int, sizeOf func(R) int) int {
	n, held := 0, 0
	for n < len(rows) && (limit == 0 || n < limit) && (size == 0 || held < size) {
		held += sizeOf(rows[n])
		n++
	}
	return n
}

// Versions implements [registrystore.ServerReader].
func (s *Servers) Versions(ctx context.Context, q registrystore.VersionsQuery) (registrystore.Page, error) {
	found, err := s.listNewestFirst(ctx, func(r versionRow) bool {
		return r.Name == q.Name && isVisible(r, q.Deleted) &&
			(!q.WithoutDeprecated || r.Status != registry.StatusDeprecated) &&
			(q.Before.IsZero() || r.PublishedAt.Before(q.Before))
	})
	return cutRecords(found, q.Limit, q.Bytes), err
}

// Outline implements [registrystore.ServerReader].
func (s *Servers) Outline(ctx context.Context, name registry.Name, deleted bool) ([]registry.Edition, error) {
	found, err := s.listNewestFirst(ctx, func(v versionRow) bool { return v.Name == name && isVisible(v, deleted) })
	editions := make([]registry.Edition, 0, len(found))
	for _, v := range found {
		editions = append(editions, registry.Edition{Release: v.Release, Size: len(v.Document)})
	}
	return editions, err
}

func (s *Servers) listNewestFirst(ctx context.Context, wanted func(versionRow) bool) ([]versionRow, error) {
	return s.db.versions.list(ctx, wanted, newestVersion)
}

func newestVersion(a, b versionRow) int { return b.PublishedAt.Compare(a.PublishedAt) }

// Version implements [registrystore.ServerReader].
func (s *Servers) Version(
	ctx context.Context, name registry.Name, version registry.Version, deleted bool,
) (registry.Record, error) {
	return s.findOne(ctx, func(v versionRow) bool {
		return v.Name == name && v.Version == version && isVisible(v, deleted)
	})
}

// Latest implements [registrystore.ServerReader].
func (s *Servers) Latest(ctx context.Context, name registry.Name, deleted bool) (registry.Record, error) {
	return s.findOne(ctx, func(v versionRow) bool { return v.Name == name && v.Latest && isVisible(v, deleted) })
}

func (s *Servers) findOne(ctx context.Context, wanted func(versionRow) bool) (registry.Record, error) {
	found, err := s.db.versions.one(ctx, wanted, newestVersion)
	return found.Record, err
}

// Undeprecated implements [registrystore.ServerReader].
func (s *Servers) Undeprecated(ctx context.Context, names []registry.Name) (releases []registry.Release, err error) {
	found, err := s.listNewestFirst(ctx, func(v versionRow) bool { return slices.Contains(names, v.Name) })
	wanted := map[registry.Name]bool{}
	for _, v := range found {
		wanted[v.Name] = wanted[v.Name] || v.Latest && v.Status == registry.StatusDeprecated
	}
	for _, v := range found {
		if wanted[v.Name] && v.Status != registry.StatusDeprecated {
			releases = append(releases, v.Release)
		}
	}
	return releases, err
}

// Lock implements [registrystore.ServerWriter]. It locks nothing, because transactions run one at a
// time.
func (s *Servers) Lock(ctx context.Context, name registry.Name) ([]registry.Release, error) {
	if s.db.currentTransaction(ctx) == nil {
		return nil, errNoTransaction
	}
	found, err := s.listNewestFirst(ctx, func(v versionRow) bool { return v.Name == name })
	slices.Reverse(found)
	releases := make([]registry.Release, 0, len(found))
	for _, v := range found {
		releases = append(releases, v.Release)
	}
	return releases, err
}

// Save implements [registrystore.ServerWriter].
func (s *Servers) Save(ctx context.Context, changes []registrystore.Change) error {
	if s.db.currentTransaction(ctx) == nil {
		return errNoTransaction
	}
	return s.db.run(ctx, func(ctx context.Context) error {
		claims := make([]bool, len(changes))
		for i, c := range changes {
			old := s.db.versions.rows[versionKey{c.Release.Name, c.Release.Version}]
			next, err := s.applyChange(old, c)
			if err != nil {
				return err
			}
			claims[i] = s.uniqueURLs && next.Origin == (registry.Origin{}) &&
				(c.Document != nil || old.Status == registry.StatusDeleted)
			if err := s.db.versions.put(ctx, next); err != nil {
				return err
			}
		}
		for i, c := range changes {
			if err := s.checkGuarantees(c.Release, claims[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// applyChange returns the row of a version after a change.
func (s *Servers) applyChange(old versionRow, c registrystore.Change) (versionRow, error) {
	there := old.Name == c.Release.Name
	same := there && old.PublishedAt.Equal(storedTime(c.Release.PublishedAt))
	switch {
	case c.Document == nil && !same:
		return versionRow{}, s.db.versions.errNotFound()
	case there && !same:
		return versionRow{}, s.db.versions.errConflict()
	}
	next := old
	next.Release = c.Release
	if c.Document == nil {
		next.Origin = old.Origin
		return next, nil
	}
	next.Document, next.Remotes = c.Document, c.Remotes
	next.People = slices.Concat(old.People, c.People)
	slices.Sort(next.People)
	next.People = slices.Compact(next.People)
	return next, nil
}

// checkGuarantees returns a conflict if a changed version breaks a guarantee of the store. If
// claims is true, its remote URLs must belong to no other server.
func (s *Servers) checkGuarantees(changed registry.Release, claims bool) error {
	mine := s.db.versions.rows[versionKey{changed.Name, changed.Version}]
	for key, other := range s.db.versions.rows {
		if key == (versionKey{changed.Name, changed.Version}) {
			continue
		}
		if err := findConflict(mine, other, claims); err != nil {
			return err
		}
	}
	for _, covering := range []registry.Version{changed.Version, {}} {
		if s.db.quarantined.has(versionKey{changed.Name, covering}) && changed.Status != registry.StatusDeleted {
			return fault.New(fault.Conflict, "this version of the server is in quarantine")
		}
	}
	return nil
}

// findConflict returns a conflict between two versions of a server or, if claims is true, between
// the remote URLs of two servers.
func findConflict(mine, other versionRow, claims bool) error {
	if mine.Name == other.Name {
		switch {
		case mine.Latest && other.Latest:
			return fault.New(fault.Conflict, "another version of the server is the latest")
		case mine.PublishedAt.Equal(other.PublishedAt):
			return fault.New(fault.Conflict, "another version of the server was published at the same time")
		}
		return nil
	}
	if !claims || mine.Status == registry.StatusDeleted || other.Status == registry.StatusDeleted ||
		other.Origin != (registry.Origin{}) {
		return nil
	}
	for _, url := range mine.Remotes {
		if slices.Contains(other.Remotes, url) {
			return fault.New(fault.Conflict, "the remote URL "+string(url)+" belongs to another server")
		}
	}
	return nil
}

// Responsible implements [registrystore.ServerWriter].
func (s *Servers) Responsible(
	ctx context.Context, name registry.Name, version registry.Version,
) (people []registry.Holder, err error) {
	if s.db.currentTransaction(ctx) == nil {
		return nil, errNoTransaction
	}
	found, err := s.listNewestFirst(ctx, func(v versionRow) bool {
		return v.Name == name && (v.Version == version || version == registry.Version{})
	})
	for _, v := range found {
		people = append(people, v.People...)
	}
	slices.Sort(people)
	return slices.Compact(people), err
}

// CheckRemotes implements [registrystore.ServerWriter].
func (s *Servers) CheckRemotes(ctx context.Context, name registry.Name, remotes []registry.RemoteURL) error {
	return s.db.run(ctx, func(context.Context) error {
		mine := versionRow{
			Record:  registry.Record{Release: registry.Release{Name: name, Status: registry.StatusActive}},
			Remotes: remotes,
		}
		for _, other := range s.db.versions.rows {
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

func isVisible(v versionRow, deleted bool) bool { return deleted || v.Status != registry.StatusDeleted }

func matchesSearch(q registrystore.Query, r registry.Record) bool {
	return comparePosition(r.Name, r.Version, q.AfterName, q.AfterVersion) > 0 &&
		(q.Deleted || r.Status != registry.StatusDeleted) &&
		(!q.LatestOnly || r.Latest) &&
		(!q.WithoutDeprecated || r.Status != registry.StatusDeprecated) &&
		(q.Names == nil ||
			slices.ContainsFunc(q.Names, func(n registry.NameRange) bool { return n.Contains(r.Name.String()) })) &&
		(q.Version == registry.Version{} || r.Version == q.Version) &&
		(q.UpdatedSince.IsZero() || r.UpdatedAt.After(q.UpdatedSince)) &&
		strings.Contains(strings.ToLower(r.Name.String()), lowerASCII(q.Search))
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

// Quarantine implements [registrystore.Quarantine].
type Quarantine struct {
	*table[versionKey, registry.Quarantined]
}

// NewQuarantine returns what is in quarantine of a database.
func NewQuarantine(db *Database) *Quarantine { return &Quarantine{db.quarantined} }

// Entries implements [registrystore.Quarantine].
func (s *Quarantine) Entries(ctx context.Context, name registry.Name) ([]registry.Quarantined, error) {
	return s.list(ctx, func(q registry.Quarantined) bool { return q.Name == name }, compareQuarantined)
}

// PriorStatuses implements [registrystore.Quarantine].
func (s *Quarantine) PriorStatuses(ctx context.Context, name registry.Name) (found []registry.PriorStatus, err error) {
	rows, err := s.db.priors.list(ctx, func(p priorRow) bool { return p.Name == name }, func(a, b priorRow) int {
		return cmp.Compare(a.Prior.Version.String(), b.Prior.Version.String())
	})
	for _, row := range rows {
		found = append(found, row.Prior)
	}
	return found, err
}

// Add implements [registrystore.Quarantine].
func (s *Quarantine) Add(ctx context.Context, q registry.Quarantined, prior []registry.PriorStatus) error {
	prior = slices.Clone(prior)
	return s.db.run(ctx, func(ctx context.Context) error {
		prior = slices.DeleteFunc(prior, func(p registry.PriorStatus) bool {
			return s.db.priors.has(versionKey{q.Name, p.Version})
		})
		return cmp.Or(s.insert(ctx, q), s.SetPrior(ctx, q.Name, prior))
	})
}

// SetPrior implements [registrystore.Quarantine].
func (s *Quarantine) SetPrior(ctx context.Context, name registry.Name, prior []registry.PriorStatus) error {
	return s.db.run(ctx, func(ctx context.Context) (err error) {
		for _, p := range prior {
			err = cmp.Or(err, s.db.priors.put(ctx, priorRow{name, p}))
		}
		return err
	})
}

// Remove implements [registrystore.Quarantine].
func (s *Quarantine) Remove(
	ctx context.Context, name registry.Name, version registry.Version, released []registry.Version,
) error {
	return s.db.run(ctx, func(ctx context.Context) error {
		_, err := s.db.priors.removeAll(ctx, func(p priorRow) bool {
			return p.Name == name && slices.Contains(released, p.Prior.Version)
		})
		return cmp.Or(s.remove(ctx, versionKey{name, version}), err)
	})
}

// List implements [registrystore.Quarantine].
func (s *Quarantine) List(ctx context.Context, q registrystore.QuarantineQuery) ([]registry.Quarantined, error) {
	return s.listFirst(ctx, q.Limit, func(e registry.Quarantined) bool {
		return comparePosition(e.Name, e.Version, q.AfterName, q.AfterVersion) > 0 && e.Since.After(q.Since) &&
			slices.ContainsFunc(q.Patterns, func(p registry.Pattern) bool { return p.Matches(e.Name) })
	}, compareQuarantined)
}

func compareQuarantined(a, b registry.Quarantined) int {
	return comparePosition(a.Name, a.Version, b.Name.String(), b.Version.String())
}

// comparePosition compares a version with a position in a list.
func comparePosition(name registry.Name, version registry.Version, afterName, afterVersion string) int {
	return cmp.Or(cmp.Compare(name.String(), afterName), cmp.Compare(version.String(), afterVersion))
}
