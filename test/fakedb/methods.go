package fakedb

import (
	"cmp"
	"context"

	"github.com/tollgate-dev/tollgate/core/catalogue"
	"github.com/tollgate-dev/tollgate/ports/methodstore"
)

// Methods implements [methodstore.Store].
type Methods struct{ db *Database }

var _ methodstore.Store = (*Methods)(nil)

// NewMethods returns the methods of a database.
func NewMethods(db *Database) *Methods { return &Methods{db} }

// List implements [methodstore.Store].
func (s *Methods) List(ctx context.Context) ([]catalogue.Method, error) {
	methods, err := s.db.methods.list(ctx, all, func(a, b catalogue.Method) int { return cmp.Compare(a.ID, b.ID) })
	for i := range methods {
		methods[i].Parameters = append([]string{}, methods[i].Parameters...) // not nil
	}
	return methods, err
}

// Add implements [methodstore.Store].
func (s *Methods) Add(ctx context.Context, m catalogue.Method) error {
	return s.db.methods.insert(ctx, m)
}

// Remove implements [methodstore.Store].
func (s *Methods) Remove(ctx context.Context, id catalogue.MethodID) error {
	return s.db.methods.remove(ctx, id)
}

// Put implements [methodstore.Store].
func (s *Methods) Put(ctx context.Context, methods []catalogue.Method, replace bool) error {
	return s.db.run(ctx, func(ctx context.Context) error {
		replaced := map[catalogue.MethodID]bool{}
		for _, m := range methods {
			replaced[m.ID] = true
		}
		if _, err := s.db.methods.removeAll(ctx, func(m catalogue.Method) bool {
			return replace || replaced[m.ID]
		}); err != nil {
			return err
		}
		return s.db.methods.insert(ctx, methods...)
	})
}
