package fakedb

import (
	"cmp"
	"context"
	"slices"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// Quarantine implements [registrystore.Quarantine].
type Quarantine struct{ db *Database }

var _ registrystore.Quarantine = (*Quarantine)(nil)

// NewQuarantine returns what is in quarantine of a database.
func NewQuarantine(db *Database) *Quarantine { return &Quarantine{db: db} }

// Entries implements [registrystore.Quarantine].
func (s *Quarantine) Entries(ctx context.Context, name registry.Name) ([]registry.Quarantined, error) {
	return s.selectEntries(ctx, func(q *registry.Quarantined) bool { return q.Name == name })
}

// PriorStatuses implements [registrystore.Quarantine].
func (s *Quarantine) PriorStatuses(ctx context.Context, name registry.Name) (found []registry.PriorStatus, err error) {
	err = s.db.readTables(ctx, func(t *tables) error {
		for key, p := range t.registry.priorStatuses {
			if key.name == name {
				found = append(found, p)
			}
		}
		return nil
	})
	slices.SortFunc(found, func(a, b registry.PriorStatus) int { return cmp.Compare(a.Version.String(), b.Version.String()) })
	return found, err
}

// Add implements [registrystore.Quarantine].
func (s *Quarantine) Add(ctx context.Context, q registry.Quarantined, prior []registry.PriorStatus) error {
	return s.db.writeTables(ctx, func(t *tables) error {
		key := versionKey{q.Name, q.Version}
		if _, taken := t.registry.quarantined[key]; taken {
			return fault.New(fault.Conflict, "it is in quarantine already")
		}
		q.Since = truncateToMicroseconds(q.Since)
		t.registry.quarantined[key] = q
		for _, p := range prior {
			key := versionKey{q.Name, p.Version}
			if _, stored := t.registry.priorStatuses[key]; !stored {
				p.ChangedAt = truncateToMicroseconds(p.ChangedAt)
				t.registry.priorStatuses[key] = p
			}
		}
		return nil
	})
}

// SetPrior implements [registrystore.Quarantine].
func (s *Quarantine) SetPrior(ctx context.Context, name registry.Name, prior []registry.PriorStatus) error {
	return s.db.writeTables(ctx, func(t *tables) error {
		for _, p := range prior {
			p.ChangedAt = truncateToMicroseconds(p.ChangedAt)
			t.registry.priorStatuses[versionKey{name, p.Version}] = p
		}
		return nil
	})
}

// Remove implements [registrystore.Quarantine].
func (s *Quarantine) Remove(ctx context.Context, name registry.Name, version registry.Version, released []registry.Version) error {
	return s.db.writeTables(ctx, func(t *tables) error {
		key := versionKey{name, version}
		if _, ok := t.registry.quarantined[key]; !ok {
			return fault.New(fault.NotFound, "it is not in quarantine")
		}
		delete(t.registry.quarantined, key)
		for _, v := range released {
			delete(t.registry.priorStatuses, versionKey{name, v})
		}
		return nil
	})
}

// List implements [registrystore.Quarantine].
func (s *Quarantine) List(ctx context.Context, q registrystore.QuarantineQuery) ([]registry.Quarantined, error) {
	found, err := s.selectEntries(ctx, func(e *registry.Quarantined) bool {
		return compareTo(e, q.AfterName, q.AfterVersion) > 0 &&
			slices.ContainsFunc(q.Patterns, func(p registry.Pattern) bool { return p.Matches(e.Name) })
	})
	return found[:min(q.Limit, len(found))], err
}

func (s *Quarantine) selectEntries(ctx context.Context, wanted func(*registry.Quarantined) bool) (found []registry.Quarantined, err error) {
	err = s.db.readTables(ctx, func(t *tables) error {
		for _, q := range t.registry.quarantined {
			if wanted(&q) {
				found = append(found, q)
			}
		}
		return nil
	})
	slices.SortFunc(found, func(a, b registry.Quarantined) int { return compareTo(&a, b.Name.String(), b.Version.String()) })
	return found, err
}

func compareTo(q *registry.Quarantined, name, version string) int {
	return cmp.Or(cmp.Compare(q.Name.String(), name), cmp.Compare(q.Version.String(), version))
}
