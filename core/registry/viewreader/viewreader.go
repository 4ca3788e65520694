// Package viewreader reads the servers of a view, of which use cases see no others. Package view has
// the rules, and package viewing decides who may read a view.
package viewreader

import (
	"context"
	"errors"
	"slices"

	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/view"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// Reader reads the servers of a view. In a view that hides deprecated versions, a server has its
// other versions only, and the greatest of them is the latest (contract C-32). Exactly one version
// of a server is the latest in each result that has all of them, whatever is changed meanwhile. It
// is safe for concurrent use.
type Reader struct {
	servers registrystore.SnapshotReader
	view    view.View
	names   []registry.NameRange
	whole   bool // in a snapshot
}

var _ registrystore.SnapshotReader = (*Reader)(nil)

// New returns a reader of the servers of a view.
func New(servers registrystore.SnapshotReader, v view.View) *Reader {
	return &Reader{servers: servers, view: v, names: v.Names()}
}

func (r *Reader) hides() bool { return r.view.Deprecated == view.Hide }

// Snapshot implements registrystore.SnapshotReader.
func (r *Reader) Snapshot(ctx context.Context, do func(ctx context.Context) error) error {
	return r.servers.Snapshot(ctx, do)
}

// errApart ends reads without a snapshot that need the latest version of a server, which is not
// among what they have read.
var errApart = errors.New("the latest version must be read in the same snapshot")

// readServer returns the result of read, whose reads of the store see one state. Mostly it reads
// only once, as the latest version is shown, so that it needs a snapshot only otherwise.
func readServer[T any](
	ctx context.Context, r *Reader, read func(ctx context.Context, r *Reader) (T, error),
) (T, error) {
	if found, err := read(ctx, r); !errors.Is(err, errApart) {
		return found, err
	}
	return readInSnapshot(ctx, r, read)
}

// readInSnapshot returns the result of read, with a reader all of whose reads see one state.
func readInSnapshot[T any](
	ctx context.Context, r *Reader, read func(ctx context.Context, r *Reader) (T, error),
) (found T, err error) {
	whole := *r
	whole.whole = true
	err = r.Snapshot(ctx, func(ctx context.Context) (err error) {
		found, err = read(ctx, &whole)
		return err
	})
	return found, err
}

// List implements registrystore.ServerReader. q has no ranges of names.
func (r *Reader) List(ctx context.Context, q registrystore.Query) (registrystore.Page, error) {
	q.Names = r.names
	if !r.hides() {
		return r.servers.List(ctx, q)
	}
	return readInSnapshot(ctx, r, func(ctx context.Context, r *Reader) (registrystore.Page, error) {
		if q.LatestOnly && q.UpdatedSince.IsZero() {
			return r.listLatest(ctx, q)
		}
		return r.listShown(ctx, q)
	})
}

// listLatest returns a page of the latest versions. It reads the latest of all versions, and puts
// the greatest that is shown in the place of a deprecated one.
func (r *Reader) listLatest(ctx context.Context, q registrystore.Query) (registrystore.Page, error) {
	found, err := r.servers.List(ctx, q)
	if err != nil {
		return registrystore.Page{}, err
	}
	var hidden []registry.Name
	for i := range found.Records {
		if r.view.Hides(found.Records[i].Status) {
			hidden = append(hidden, found.Records[i].Name)
		}
	}
	if len(hidden) == 0 {
		return found, nil
	}
	latest, err := r.latestOf(ctx, hidden)
	if err != nil {
		return registrystore.Page{}, err
	}
	p := registrystore.Page{Records: make([]registry.Record, 0, len(found.Records))}
	size := 0
	for i := range found.Records {
		record, ok := found.Records[i], true
		if r.view.Hides(record.Status) {
			if record, ok, err = r.readLatest(ctx, latest[record.Name], q.Deleted); err != nil {
				return registrystore.Page{}, err
			}
		}
		if ok {
			p.Records = append(p.Records, record)
			size += len(record.Document)
		}
		// A document that replaces another one may be larger.
		if last := i == len(found.Records)-1; !last && q.Bytes > 0 && size >= q.Bytes {
			p.More, p.EndName, p.EndVersion = true, found.Records[i].Name.String(), found.Records[i].Version.String()
			return p, nil
		}
	}
	if found.More { // the page ends where that of all versions ends
		p.More = true
		p.EndName, p.EndVersion = found.End()
	}
	return p, nil
}

// readLatest reads a version and gives it the latest flag. It returns false if it does not exist to
// show.
func (r *Reader) readLatest(ctx context.Context, latest registry.Release, deleted bool) (registry.Record, bool, error) {
	if latest.Status == "" || latest.Status == registry.StatusDeleted && !deleted {
		return registry.Record{}, false, nil
	}
	record, err := r.servers.Version(ctx, latest.Name, latest.Version, deleted)
	if err != nil {
		return registry.Record{}, false, err
	}
	record.Latest = true
	return record, true, nil
}

// listShown returns a page of the versions that are shown, with the latest flag that they have
// among them. Of the versions updated since a time, few are not the latest, so that a page of the
// latest ones has fewer records than the limit, but is not empty as a rule. With deleted versions,
// they also have the hidden ones, as deleted: a reader that follows updates drops them then.
func (r *Reader) listShown(ctx context.Context, q registrystore.Query) (registrystore.Page, error) {
	latestOnly := q.LatestOnly
	q.LatestOnly, q.WithoutDeprecated = false, q.UpdatedSince.IsZero() || !q.Deleted
	p, err := r.servers.List(ctx, q)
	if err != nil {
		return registrystore.Page{}, err
	}
	shown := make([]*registry.Release, 0, len(p.Records))
	for i := range p.Records {
		if release := &p.Records[i].Release; r.view.Hides(release.Status) {
			release.Status, release.Latest = registry.StatusDeleted, false
		} else {
			shown = append(shown, release)
		}
	}
	if err := r.flagLatest(ctx, shown); err != nil {
		return registrystore.Page{}, err
	}
	if latestOnly {
		if p.More {
			p.EndName, p.EndVersion = p.End()
		}
		p.Records = slices.DeleteFunc(p.Records, func(record registry.Record) bool { return !record.Latest })
	}
	return p, nil
}

// Versions implements registrystore.ServerReader.
func (r *Reader) Versions(ctx context.Context, q registrystore.VersionsQuery) (registrystore.Page, error) {
	if !r.view.Includes(q.Name) {
		return registrystore.Page{}, ctx.Err()
	}
	q.WithoutDeprecated = r.hides()
	return readServer(ctx, r, func(ctx context.Context, r *Reader) (registrystore.Page, error) {
		p, err := r.servers.Versions(ctx, q)
		if err == nil && r.hides() {
			err = r.flagLatest(ctx, releasesOf(p.Records))
		}
		return p, err
	})
}

// Outline implements registrystore.ServerReader.
func (r *Reader) Outline(ctx context.Context, name registry.Name, deleted bool) ([]registry.Edition, error) {
	if !r.view.Includes(name) {
		return nil, ctx.Err()
	}
	return readServer(ctx, r, func(ctx context.Context, r *Reader) ([]registry.Edition, error) {
		all, err := r.servers.Outline(ctx, name, deleted)
		if err != nil || !r.hides() {
			return all, err
		}
		all = slices.DeleteFunc(all, func(e registry.Edition) bool { return r.view.Hides(e.Status) })
		return all, r.flagLatest(ctx, each.MapRef(all, func(e *registry.Edition) *registry.Release { return &e.Release }))
	})
}

// Version implements registrystore.ServerReader.
func (r *Reader) Version(
	ctx context.Context, name registry.Name, version registry.Version, deleted bool,
) (registry.Record, error) {
	if !r.view.Includes(name) {
		return registry.Record{}, errNotInView()
	}
	return readServer(ctx, r, func(ctx context.Context, r *Reader) (registry.Record, error) {
		record, err := r.servers.Version(ctx, name, version, deleted)
		switch {
		case err != nil || !r.hides():
			return record, err
		case r.view.Hides(record.Status):
			return registry.Record{}, errNotInView()
		}
		return record, r.flagLatest(ctx, []*registry.Release{&record.Release})
	})
}

// Latest implements registrystore.ServerReader.
func (r *Reader) Latest(ctx context.Context, name registry.Name, deleted bool) (registry.Record, error) {
	if !r.view.Includes(name) {
		return registry.Record{}, errNotInView()
	}
	return readServer(ctx, r, func(ctx context.Context, r *Reader) (registry.Record, error) {
		record, err := r.servers.Latest(ctx, name, deleted)
		if err != nil || !r.view.Hides(record.Status) {
			return record, err
		}
		latest, err := r.latestOf(ctx, []registry.Name{name})
		if err != nil {
			return registry.Record{}, err
		}
		record, ok, err := r.readLatest(ctx, latest[name], deleted)
		if err == nil && !ok {
			err = errNotInView()
		}
		return record, err
	})
}

// Undeprecated implements registrystore.ServerReader.
func (r *Reader) Undeprecated(ctx context.Context, names []registry.Name) ([]registry.Release, error) {
	return r.servers.Undeprecated(ctx,
		slices.DeleteFunc(slices.Clone(names), func(n registry.Name) bool { return !r.view.Includes(n) }))
}

func errNotInView() error {
	return fault.New(fault.NotFound, "no such version of a server in the view")
}

// latestOf returns the version that is the latest in the view of each server whose latest version
// is deprecated and that has another one. It returns errApart outside of a snapshot.
func (r *Reader) latestOf(ctx context.Context, names []registry.Name) (map[registry.Name]registry.Release, error) {
	if !r.whole {
		return nil, errApart
	}
	latest := make(map[registry.Name]registry.Release, len(names))
	for part := range slices.Chunk(names, registrystore.MaxNames) {
		releases, err := r.servers.Undeprecated(ctx, part)
		if err != nil {
			return nil, err
		}
		byName := map[registry.Name][]registry.Release{}
		for _, release := range releases {
			byName[release.Name] = append(byName[release.Name], release)
		}
		for name, all := range byName {
			if best, ok := r.view.Latest(all); ok {
				latest[name] = best
			}
		}
	}
	return latest, nil
}

// flagLatest gives the latest flag to those of the releases, which are all shown, that have it in
// the view. Where one of them has it among all versions, that one has it in the view too.
func (r *Reader) flagLatest(ctx context.Context, shown []*registry.Release) error {
	flagged := map[registry.Name]bool{}
	for _, release := range shown {
		flagged[release.Name] = flagged[release.Name] || release.Latest
	}
	var names []registry.Name
	for name, has := range flagged {
		if !has {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	latest, err := r.latestOf(ctx, names)
	if err != nil {
		return err
	}
	for _, release := range shown {
		if best, ok := latest[release.Name]; ok && best.Version == release.Version {
			release.Latest = true
		}
	}
	return nil
}

func releasesOf(records []registry.Record) []*registry.Release {
	return each.MapRef(records, func(r *registry.Record) *registry.Release { return &r.Release })
}
