package fakedb

import (
	"cmp"
	"context"

	"github.com/tollgate-dev/tollgate/core/registry/view"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// Views implements [registrystore.Views].
type Views struct{ db *Database }

var _ registrystore.Views = (*Views)(nil)

// NewViews returns the views of a database.
func NewViews(db *Database) *Views { return &Views{db} }

// Put implements [registrystore.Views].
func (s *Views) Put(ctx context.Context, v view.View) error { return s.db.views.put(ctx, v) }

// Remove implements [registrystore.Views].
func (s *Views) Remove(ctx context.Context, name view.Name) error {
	return s.db.run(ctx, func(ctx context.Context) error {
		_, err := s.db.viewTokens.removeAll(ctx, func(t view.Token) bool { return t.View == name })
		return cmp.Or(s.db.views.remove(ctx, name), err)
	})
}

// List implements [registrystore.Views].
func (s *Views) List(ctx context.Context) ([]view.View, error) {
	return s.db.views.list(ctx, all, func(a, b view.View) int { return cmp.Compare(a.Name, b.Name) })
}

// AddToken implements [registrystore.Views].
func (s *Views) AddToken(ctx context.Context, t view.Token) error {
	return s.db.run(ctx, func(ctx context.Context) error {
		if !s.db.views.has(t.View) {
			return s.db.views.errNotFound()
		}
		return s.db.viewTokens.insert(ctx, t)
	})
}

// RemoveToken implements [registrystore.Views].
func (s *Views) RemoveToken(ctx context.Context, v view.Name, name view.TokenName) error {
	return s.db.viewTokens.remove(ctx, viewTokenKey{v, name})
}

// Tokens implements [registrystore.Views].
func (s *Views) Tokens(ctx context.Context) ([]view.Token, error) {
	return s.db.viewTokens.list(ctx, all, func(a, b view.Token) int {
		return cmp.Or(cmp.Compare(a.View, b.View), cmp.Compare(a.Name, b.Name))
	})
}
