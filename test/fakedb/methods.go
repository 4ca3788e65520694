package fakedb

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/tollgate-dev/tollgate/core/catalogue"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/methodstore"
)

// Methods implements [methodstore.Store].
type Methods struct{ db *Database }

var _ methodstore.Store = (*Methods)(nil)

// NewMethods returns the methods of a database.
func NewMethods(db *Database) *Methods { return &Methods{db: db} }

// List returns all methods ordered by id.
func (s *Methods) List(ctx context.Context) (all []catalogue.Method, err error) {
	err = s.db.readTables(ctx, func(t *tables) error {
		for _, m := range t.registry.methods {
			all = append(all, copyMethod(m))
		}
		return nil
	})
	slices.SortFunc(all, func(a, b catalogue.Method) int { return cmp.Compare(a.ID, b.ID) })
	return all, err
}

// Add stores a method.
func (s *Methods) Add(ctx context.Context, m catalogue.Method) error {
	return s.db.writeTables(ctx, func(t *tables) error {
		if err := checkMethod(t.registry.methods, m); err != nil {
			return err
		}
		t.registry.methods[m.ID] = copyMethod(m)
		return nil
	})
}

// Remove deletes a method.
func (s *Methods) Remove(ctx context.Context, id catalogue.MethodID) error {
	return s.db.writeTables(ctx, func(t *tables) error {
		if _, there := t.registry.methods[id]; !there {
			return fault.New(fault.NotFound, "the method does not exist")
		}
		delete(t.registry.methods, id)
		return nil
	})
}

// Put stores all methods. If it returns an error, it has stored no method.
func (s *Methods) Put(ctx context.Context, methods []catalogue.Method, replace bool) error {
	return s.db.writeTables(ctx, func(t *tables) error {
		after := maps.Clone(t.registry.methods)
		if replace {
			clear(after)
		}
		for _, m := range methods {
			delete(after, m.ID)
		}
		for _, m := range methods {
			if err := checkMethod(after, m); err != nil {
				return err
			}
			after[m.ID] = copyMethod(m)
		}
		t.registry.methods = after
		return nil
	})
}

// checkMethod returns a conflict if another method has the ID or the path.
func checkMethod(methods map[catalogue.MethodID]catalogue.Method, m catalogue.Method) error {
	for _, other := range methods {
		if other.ID == m.ID || other.Path == m.Path {
			return errConflict("another method has the id or the path")
		}
	}
	return nil
}

// copyMethod returns a copy that shares no memory with m.
func copyMethod(m catalogue.Method) catalogue.Method {
	m.Parameters = append([]string{}, m.Parameters...)
	return m
}
