package fakedb

import (
	"cmp"
	"context"
	"slices"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/view"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// Views implements [registrystore.Views].
type Views struct{ db *Database }

var _ registrystore.Views = (*Views)(nil)

// NewViews returns the views of a database.
func NewViews(db *Database) *Views { return &Views{db} }

// viewTokenKey identifies a token of a view.
type viewTokenKey struct {
	view view.Name
	name view.TokenName
}

// Add implements [registrystore.Views].
func (s *Views) Add(ctx context.Context, v view.View) error {
	return s.db.writeTables(ctx, func(t *tables) error {
		if _, taken := t.registry.views[v.Name]; taken {
			return fault.New(fault.Conflict, "the view already exists")
		}
		t.registry.views[v.Name] = copyView(v)
		return nil
	})
}

// Remove implements [registrystore.Views].
func (s *Views) Remove(ctx context.Context, name view.Name) error {
	return s.db.writeTables(ctx, func(t *tables) error {
		if _, ok := t.registry.views[name]; !ok {
			return errNoView()
		}
		delete(t.registry.views, name)
		for key := range t.registry.viewTokens {
			if key.view == name {
				delete(t.registry.viewTokens, key)
			}
		}
		return nil
	})
}

// List implements [registrystore.Views].
func (s *Views) List(ctx context.Context) (all []view.View, err error) {
	err = s.db.readTables(ctx, func(t *tables) error {
		for _, v := range t.registry.views {
			all = append(all, copyView(v))
		}
		return nil
	})
	slices.SortFunc(all, func(a, b view.View) int { return cmp.Compare(a.Name, b.Name) })
	return all, err
}

// AddToken implements [registrystore.Views].
func (s *Views) AddToken(ctx context.Context, added view.Token) error {
	added.CreatedAt = truncateToMicroseconds(added.CreatedAt)
	return s.db.writeTables(ctx, func(t *tables) error {
		if _, ok := t.registry.views[added.View]; !ok {
			return errNoView()
		}
		key := viewTokenKey{added.View, added.Name}
		for other, token := range t.registry.viewTokens {
			if other == key || token.Hash == added.Hash {
				return fault.New(fault.Conflict, "the token already exists")
			}
		}
		t.registry.viewTokens[key] = added
		return nil
	})
}

// RemoveToken implements [registrystore.Views].
func (s *Views) RemoveToken(ctx context.Context, v view.Name, name view.TokenName) error {
	return s.db.writeTables(ctx, func(t *tables) error {
		key := viewTokenKey{v, name}
		if _, ok := t.registry.viewTokens[key]; !ok {
			return fault.New(fault.NotFound, "the token does not exist")
		}
		delete(t.registry.viewTokens, key)
		return nil
	})
}

// Tokens implements [registrystore.Views].
func (s *Views) Tokens(ctx context.Context) (all []view.Token, err error) {
	err = s.db.readTables(ctx, func(t *tables) error {
		for _, token := range t.registry.viewTokens {
			all = append(all, token)
		}
		return nil
	})
	slices.SortFunc(all, func(a, b view.Token) int { return cmp.Or(cmp.Compare(a.View, b.View), cmp.Compare(a.Name, b.Name)) })
	return all, err
}

func errNoView() error { return fault.New(fault.NotFound, "the view does not exist") }

// copyView returns a view that shares no memory with v.
func copyView(v view.View) view.View {
	v.Include, v.Exclude = slices.Clone(v.Include), slices.Clone(v.Exclude)
	return v
}
