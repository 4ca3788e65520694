package fakedb

import (
	"cmp"
	"context"
	"slices"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// Grants implements [registrystore.Grants].
type Grants struct{ db *Database }

var _ registrystore.Grants = (*Grants)(nil)

// NewGrants returns the grants of a database.
func NewGrants(db *Database) *Grants { return &Grants{db: db} }

// Add implements [registrystore.Grants].
func (s *Grants) Add(ctx context.Context, g registry.Grant) error {
	return s.db.writeTables(ctx, func(t *tables) error {
		if t.registry.grants[g] {
			return fault.New(fault.Conflict, "the grant already exists")
		}
		t.registry.grants[g] = true
		return nil
	})
}

// Remove deletes a grant.
func (s *Grants) Remove(ctx context.Context, g registry.Grant) error {
	return s.db.writeTables(ctx, func(t *tables) error {
		if !t.registry.grants[g] {
			return fault.New(fault.NotFound, "the grant does not exist")
		}
		delete(t.registry.grants, g)
		return nil
	})
}

// Of returns the grants of a holder.
func (s *Grants) Of(ctx context.Context, holder registry.Holder) ([]registry.Grant, error) {
	return s.selectSorted(ctx, func(g registry.Grant) bool { return g.Holder == holder })
}

// List returns a page of all grants.
func (s *Grants) List(ctx context.Context, after registry.Grant, limit int) ([]registry.Grant, error) {
	found, err := s.selectSorted(ctx, func(g registry.Grant) bool { return compareGrants(g, after) > 0 })
	return found[:min(limit, len(found))], err
}

func (s *Grants) selectSorted(ctx context.Context, wanted func(registry.Grant) bool) (found []registry.Grant, err error) {
	err = s.db.readTables(ctx, func(t *tables) error {
		for g := range t.registry.grants {
			if wanted(g) {
				found = append(found, g)
			}
		}
		return nil
	})
	slices.SortFunc(found, compareGrants)
	return found, err
}

func compareGrants(a, b registry.Grant) int {
	return cmp.Or(cmp.Compare(a.Holder, b.Holder), cmp.Compare(a.Action, b.Action), cmp.Compare(a.Pattern.String(), b.Pattern.String()))
}
