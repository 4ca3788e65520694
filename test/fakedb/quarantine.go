package fakedb

import (
	"cmp"
	"context"
	"slices"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// Quarantine implements [registrystore.Quarantine].
type Quarantine struct{ db *Database }

var _ registrystore.Quarantine = (*Quarantine)(nil)

// NewQuarantine returns what is in quarantine of a database.
func NewQuarantine(db *Database) *Quarantine { return &Quarantine{db} }

// Entries implements [registrystore.Quarantine].
func (s *Quarantine) Entries(ctx context.Context, name registry.Name) ([]registry.Quarantined, error) {
	return s.db.quarantined.list(ctx, func(q registry.Quarantined) bool { return q.Name == name }, compareQuarantined)
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
		return cmp.Or(s.db.quarantined.insert(ctx, q), s.SetPrior(ctx, q.Name, prior))
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
		return cmp.Or(s.db.quarantined.remove(ctx, versionKey{name, version}), err)
	})
}

// List implements [registrystore.Quarantine].
func (s *Quarantine) List(ctx context.Context, q registrystore.QuarantineQuery) ([]registry.Quarantined, error) {
	found, err := s.db.quarantined.list(ctx, func(e registry.Quarantined) bool {
		return comparePosition(e.Name, e.Version, q.AfterName, q.AfterVersion) > 0 && e.Since.After(q.Since) &&
			slices.ContainsFunc(q.Patterns, func(p registry.Pattern) bool { return p.Matches(e.Name) })
	}, compareQuarantined)
	return first(found, q.Limit), err
}

func compareQuarantined(a, b registry.Quarantined) int {
	return comparePosition(a.Name, a.Version, b.Name.String(), b.Version.String())
}

// comparePosition compares a version with a position in a list.
func comparePosition(name registry.Name, version registry.Version, afterName, afterVersion string) int {
	return cmp.Or(cmp.Compare(name.String(), afterName), cmp.Compare(version.String(), afterVersion))
}
