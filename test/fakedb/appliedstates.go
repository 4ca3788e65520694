package fakedb

import (
	"cmp"
	"context"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// AppliedStates implements [registrystore.AppliedStates].
type AppliedStates struct{ db *Database }

var _ registrystore.AppliedStates = (*AppliedStates)(nil)

// NewAppliedStates returns the states of files of a database.
func NewAppliedStates(db *Database) *AppliedStates { return &AppliedStates{db} }

// Save implements [registrystore.AppliedStates].
func (s *AppliedStates) Save(ctx context.Context, a registry.AppliedState) error {
	return s.db.applied.put(ctx, a)
}

// List implements [registrystore.AppliedStates].
func (s *AppliedStates) List(ctx context.Context) ([]registry.AppliedState, error) {
	return s.db.applied.list(ctx, all, func(a, b registry.AppliedState) int { return cmp.Compare(a.Owner, b.Owner) })
}
