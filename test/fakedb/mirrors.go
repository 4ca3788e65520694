package fakedb

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/mirror"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// Mirrors implements [registrystore.Mirrors] and [registrystore.MirrorRereader].
type Mirrors struct{ *table[mirror.Name, mirrorRow] }

// NewMirrors returns the mirrors of a database.
func NewMirrors(db *Database) *Mirrors { return &Mirrors{db.mirrors} }

// Put implements [registrystore.Mirrors].
func (s *Mirrors) Put(ctx context.Context, m mirror.Mirror) error {
	return s.db.run(ctx, func(ctx context.Context) error {
		row := mirrorRow{Mirror: m}
		if stored, ok := s.rows[m.Name]; ok {
			state := stored.Mirror.State
			state.NextAt, state.LastFull = m.State.NextAt, m.State.LastFull
			row.Mirror.CreatedAt, row.Mirror.State, row.Lease = stored.Mirror.CreatedAt, state, stored.Lease
		}
		return s.put(ctx, row)
	})
}

// Remove implements [registrystore.Mirrors].
func (s *Mirrors) Remove(ctx context.Context, name mirror.Name) error {
	return s.db.run(ctx, func(ctx context.Context) error {
		_, err := s.db.tracked.removeAll(ctx, func(t trackedRow) bool { return t.Mirror == name })
		return cmp.Or(s.remove(ctx, name), err)
	})
}

// List implements [registrystore.Mirrors].
func (s *Mirrors) List(ctx context.Context) (mirrors []mirror.Mirror, err error) {
	rows, err := s.list(ctx, all, func(a, b mirrorRow) int {
		return cmp.Compare(a.Mirror.Name, b.Mirror.Name)
	})
	for _, row := range rows {
		mirrors = append(mirrors, row.Mirror)
	}
	return mirrors, err
}

// SaveState implements [registrystore.Mirrors].
func (s *Mirrors) SaveState(ctx context.Context, name mirror.Name, holder string, state mirror.State) error {
	return s.db.run(ctx, func(ctx context.Context) error {
		m, ok := s.rows[name]
		if !ok || m.Lease.Holder != holder {
			return fault.New(fault.Conflict, "the mirror does not exist any more, or another one reads for it")
		}
		m.Mirror.State = state
		return s.put(ctx, m)
	})
}

// Lease implements [registrystore.Mirrors].
func (s *Mirrors) Lease(ctx context.Context, name mirror.Name, l registrystore.Lease) (bool, error) {
	taken := false
	err := s.update(ctx, name, func(m *mirrorRow) error {
		until := m.Lease.Until
		if taken = m.Lease.Holder == l.Holder || !until.After(l.Now) ||
			until.After(l.Until.Add(registrystore.MaxSkew)); taken {
			m.Lease = l
		}
		return nil
	})
	return taken, err
}

// Release implements [registrystore.Mirrors].
func (s *Mirrors) Release(ctx context.Context, name mirror.Name, holder string) error {
	return s.db.run(ctx, func(ctx context.Context) error {
		m := s.rows[name]
		if m.Lease.Holder != holder {
			return nil
		}
		m.Lease = registrystore.Lease{}
		return s.put(ctx, m)
	})
}

// Reread implements [registrystore.MirrorRereader].
func (s *Mirrors) Reread(ctx context.Context, of mirror.Name) error {
	err := s.update(ctx, of, func(m *mirrorRow) error {
		m.Mirror.State.LastFull = time.Time{}
		return nil
	})
	return ignoreNotFound(err)
}

// MirroredVersions implements [registrystore.MirroredVersions].
type MirroredVersions struct{ *table[trackedKey, trackedRow] }

// NewMirroredVersions returns what the mirrors of a database have taken.
func NewMirroredVersions(db *Database) *MirroredVersions { return &MirroredVersions{db.tracked} }

// Page implements [registrystore.MirroredVersions].
func (s *MirroredVersions) Page(
	ctx context.Context, of mirror.Name, after string, limit int,
) ([]mirror.Tracked, error) {
	tracked, err := s.listTracked(ctx, of, func(name registry.Name) bool { return name.String() > after })
	servers := 0
	for i, t := range tracked {
		if i == 0 || tracked[i-1].Name != t.Name {
			servers++
		}
		if servers > limit {
			return tracked[:i], err
		}
	}
	return tracked, err
}

// OfServers implements [registrystore.MirroredVersions].
func (s *MirroredVersions) OfServers(
	ctx context.Context, of mirror.Name, names []registry.Name,
) ([]mirror.Tracked, error) {
	return s.listTracked(ctx, of, func(name registry.Name) bool { return slices.Contains(names, name) })
}

// listTracked returns what a mirror tracks of the wanted servers, ordered by name and version.
func (s *MirroredVersions) listTracked(
	ctx context.Context, of mirror.Name, wanted func(registry.Name) bool,
) (tracked []mirror.Tracked, err error) {
	rows, err := s.list(ctx, func(t trackedRow) bool { return t.Mirror == of && wanted(t.Tracked.Name) },
		func(a, b trackedRow) int {
			return comparePosition(a.Tracked.Name, a.Tracked.Version, b.Tracked.Name.String(),
				b.Tracked.Version.String())
		})
	for _, row := range rows {
		tracked = append(tracked, row.Tracked)
	}
	return tracked, err
}

// Put implements [registrystore.MirroredVersions].
func (s *MirroredVersions) Put(ctx context.Context, of mirror.Name, list []mirror.Tracked) error {
	return s.db.run(ctx, func(ctx context.Context) (err error) {
		for _, t := range list {
			err = cmp.Or(err, s.put(ctx, trackedRow{of, t}))
		}
		return err
	})
}

// End implements [registrystore.MirroredVersions].
func (s *MirroredVersions) End(
	ctx context.Context, of mirror.Name, name registry.Name, dropped []registry.Version,
) error {
	return s.db.run(ctx, func(ctx context.Context) error {
		_, err := s.db.versions.removeAll(ctx, func(v versionRow) bool {
			return v.Name == name && slices.Contains(dropped, v.Version)
		})
		_, tracked := s.removeAll(ctx, func(t trackedRow) bool {
			return t.Mirror == of && t.Tracked.Name == name
		})
		return cmp.Or(err, tracked, s.Adopt(ctx, []registry.Name{name}))
	})
}

// Adopt implements [registrystore.MirroredVersions].
func (s *MirroredVersions) Adopt(ctx context.Context, names []registry.Name) error {
	return s.db.run(ctx, func(ctx context.Context) (err error) {
		for _, v := range s.db.versions.rows {
			if slices.Contains(names, v.Name) {
				v.Origin = registry.Origin{}
				err = cmp.Or(err, s.db.versions.put(ctx, v))
			}
		}
		return err
	})
}

// Purge implements [registrystore.MirroredVersions].
func (s *MirroredVersions) Purge(ctx context.Context, names []registry.Name) error {
	_, err := s.db.versions.removeAll(ctx, func(v versionRow) bool { return slices.Contains(names, v.Name) })
	return err
}
