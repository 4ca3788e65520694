package fakedb

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/mirror"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// Mirrors implements [registrystore.Mirrors].
type Mirrors struct{ db *Database }

var _ registrystore.Mirrors = (*Mirrors)(nil)

// NewMirrors returns the mirrors of a database.
func NewMirrors(db *Database) *Mirrors { return &Mirrors{db} }

// storedMirror is a mirror with its lease.
type storedMirror struct {
	mirror.Mirror

	lease registrystore.Lease
}

// trackedKey identifies a version that a mirror tracks.
type trackedKey struct {
	mirror  mirror.Name
	name    registry.Name
	version registry.Version
}

// Add implements [registrystore.Mirrors].
func (s *Mirrors) Add(ctx context.Context, m mirror.Mirror) error {
	m.CreatedAt, m.State = truncateToMicroseconds(m.CreatedAt), copyState(m.State)
	m.Selection = copyView(m.Selection)
	return s.db.writeTables(ctx, func(t *tables) error {
		if _, taken := t.registry.mirrors[m.Name]; taken {
			return fault.New(fault.Conflict, "the mirror already exists")
		}
		t.registry.mirrors[m.Name] = storedMirror{Mirror: m}
		return nil
	})
}

// copyState returns a state as databases store it.
func copyState(s mirror.State) mirror.State {
	s.NextAt, s.LastSuccess = truncateToMicroseconds(s.NextAt), truncateToMicroseconds(s.LastSuccess)
	if s.Refused = maps.Clone(s.Refused); len(s.Refused) == 0 {
		s.Refused = nil
	}
	s.LastFull, s.FailingSince = truncateToMicroseconds(s.LastFull), truncateToMicroseconds(s.FailingSince)
	return s
}

// Remove implements [registrystore.Mirrors].
func (s *Mirrors) Remove(ctx context.Context, name mirror.Name) error {
	return s.db.writeTables(ctx, func(t *tables) error {
		if _, ok := t.registry.mirrors[name]; !ok {
			return errNoMirror()
		}
		delete(t.registry.mirrors, name)
		for key := range t.registry.tracked {
			if key.mirror == name {
				delete(t.registry.tracked, key)
			}
		}
		return nil
	})
}

// List implements [registrystore.Mirrors].
func (s *Mirrors) List(ctx context.Context) (all []mirror.Mirror, err error) {
	err = s.db.readTables(ctx, func(t *tables) error {
		for _, m := range t.registry.mirrors {
			m.Selection = copyView(m.Selection)
			all = append(all, m.Mirror)
		}
		return nil
	})
	slices.SortFunc(all, func(a, b mirror.Mirror) int { return cmp.Compare(a.Name, b.Name) })
	return all, err
}

// SaveState implements [registrystore.Mirrors].
func (s *Mirrors) SaveState(ctx context.Context, name mirror.Name, holder string, state mirror.State) error {
	return s.db.writeTables(ctx, func(t *tables) error {
		m, ok := t.registry.mirrors[name]
		if !ok || m.lease.Holder != holder {
			return fault.New(fault.Conflict, "the mirror does not exist any more, or another one reads for it")
		}
		m.State = copyState(state)
		t.registry.mirrors[name] = m
		return nil
	})
}

// Lease implements [registrystore.Mirrors].
func (s *Mirrors) Lease(ctx context.Context, name mirror.Name, l registrystore.Lease) (ok bool, err error) {
	err = s.db.writeTables(ctx, func(t *tables) error {
		m, found := t.registry.mirrors[name]
		if !found {
			return errNoMirror()
		}
		if ok = m.lease.Holder == l.Holder || !m.lease.Until.After(l.Now) || m.lease.Until.After(l.Until.Add(registrystore.MaxSkew)); ok {
			m.lease = l
			t.registry.mirrors[name] = m
		}
		return nil
	})
	return ok, err
}

// Release implements [registrystore.Mirrors].
func (s *Mirrors) Release(ctx context.Context, name mirror.Name, holder string) error {
	return s.db.writeTables(ctx, func(t *tables) error {
		if m, ok := t.registry.mirrors[name]; ok && m.lease.Holder == holder {
			m.lease = registrystore.Lease{}
			t.registry.mirrors[name] = m
		}
		return nil
	})
}

func errNoMirror() error { return fault.New(fault.NotFound, "the mirror does not exist") }

// MirroredVersions implements [registrystore.MirroredVersions].
type MirroredVersions struct{ db *Database }

var _ registrystore.MirroredVersions = (*MirroredVersions)(nil)

// NewMirroredVersions returns what the mirrors of a database have taken.
func NewMirroredVersions(db *Database) *MirroredVersions { return &MirroredVersions{db} }

// Page implements [registrystore.MirroredVersions].
func (s *MirroredVersions) Page(ctx context.Context, of mirror.Name, after string, limit int) ([]mirror.Tracked, error) {
	all, err := s.selectTracked(ctx, of, func(name registry.Name) bool { return name.String() > after })
	servers := 0
	for i, t := range all {
		if i == 0 || all[i-1].Name != t.Name {
			servers++
		}
		if servers > limit {
			return all[:i], err
		}
	}
	return all, err
}

// OfServers implements [registrystore.MirroredVersions].
func (s *MirroredVersions) OfServers(ctx context.Context, of mirror.Name, names []registry.Name) ([]mirror.Tracked, error) {
	return s.selectTracked(ctx, of, func(name registry.Name) bool { return slices.Contains(names, name) })
}

// selectTracked returns what a mirror tracks of the wanted servers, ordered by name and version.
func (s *MirroredVersions) selectTracked(ctx context.Context, of mirror.Name, wanted func(registry.Name) bool) (all []mirror.Tracked, err error) {
	err = s.db.readTables(ctx, func(t *tables) error {
		for key, tracked := range t.registry.tracked {
			if key.mirror == of && wanted(key.name) {
				all = append(all, tracked)
			}
		}
		return nil
	})
	slices.SortFunc(all, func(a, b mirror.Tracked) int {
		return cmp.Or(cmp.Compare(a.Name.String(), b.Name.String()), cmp.Compare(a.Version.String(), b.Version.String()))
	})
	return all, err
}

// Put implements [registrystore.MirroredVersions].
func (s *MirroredVersions) Put(ctx context.Context, of mirror.Name, list []mirror.Tracked) error {
	return s.db.writeTables(ctx, func(t *tables) error {
		for _, tracked := range list {
			tracked.PublishedAt = truncateToMicroseconds(tracked.PublishedAt)
			t.registry.tracked[trackedKey{of, tracked.Name, tracked.Version}] = tracked
		}
		return nil
	})
}

// Reread implements [registrystore.MirrorRereader].
func (s *Mirrors) Reread(ctx context.Context, of mirror.Name) error {
	return s.db.writeTables(ctx, func(t *tables) error {
		if m, ok := t.registry.mirrors[of]; ok {
			m.State.LastFull = time.Time{}
			t.registry.mirrors[of] = m
		}
		return nil
	})
}

// End implements [registrystore.MirroredVersions].
func (s *MirroredVersions) End(ctx context.Context, of mirror.Name, name registry.Name, dropped []registry.Version) error {
	err := s.db.writeTables(ctx, func(t *tables) error {
		for _, v := range dropped {
			delete(t.registry.versions, versionKey{name, v})
		}
		maps.DeleteFunc(t.registry.tracked, func(k trackedKey, _ mirror.Tracked) bool { return k.mirror == of && k.name == name })
		return nil
	})
	return errors.Join(err, s.Adopt(ctx, []registry.Name{name}))
}

// Adopt implements [registrystore.MirroredVersions].
func (s *MirroredVersions) Adopt(ctx context.Context, names []registry.Name) error {
	return s.db.writeTables(ctx, func(t *tables) error {
		for key, stored := range t.registry.versions {
			if slices.Contains(names, key.name) {
				stored.Origin = registry.Origin{}
				t.registry.versions[key] = stored
			}
		}
		return nil
	})
}

// Purge implements [registrystore.MirroredVersions].
func (s *MirroredVersions) Purge(ctx context.Context, names []registry.Name) error {
	return s.db.writeTables(ctx, func(t *tables) error {
		for key := range t.registry.versions {
			if slices.Contains(names, key.name) {
				delete(t.registry.versions, key)
			}
		}
		return nil
	})
}
