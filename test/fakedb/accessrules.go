package fakedb

import (
	"cmp"
	"context"

	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/ports/accessstore"
)

// AccessRules implements [accessstore.Rules].
type AccessRules struct{ db *Database }

var _ accessstore.Rules = (*AccessRules)(nil)

// NewAccessRules returns the access rules of a database.
func NewAccessRules(db *Database) *AccessRules { return &AccessRules{db} }

// List implements [accessstore.Rules].
func (s *AccessRules) List(ctx context.Context, after access.RuleName, limit int) ([]access.Rule, error) {
	found, err := s.db.accessRules.list(ctx, func(r access.Rule) bool { return r.Name > after },
		func(a, b access.Rule) int { return cmp.Compare(a.Name, b.Name) })
	return first(found, limit), err
}

// Get implements [accessstore.Rules].
func (s *AccessRules) Get(ctx context.Context, name access.RuleName) (access.Rule, error) {
	return s.db.accessRules.find(ctx, name)
}

// Count implements [accessstore.Rules].
func (s *AccessRules) Count(ctx context.Context) (int, error) {
	found, err := s.List(ctx, "", access.MaxRules)
	return len(found), err
}

// Save implements [accessstore.Rules].
func (s *AccessRules) Save(ctx context.Context, r access.Rule) error {
	return s.db.accessRules.put(ctx, r)
}

// Remove implements [accessstore.Rules].
func (s *AccessRules) Remove(ctx context.Context, name access.RuleName) error {
	return s.db.accessRules.remove(ctx, name)
}
