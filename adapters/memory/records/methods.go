package records

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/tollgate-dev/tollgate/core/catalogue"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/methodstore"
)

// Methods answers methodstore.Store.
type Methods struct{ db *Database }

var _ methodstore.Store = (*Methods)(nil)

// NewMethods returns the methods of a database.
func NewMethods(db *Database) *Methods { return &Methods{db: db} }

// List returns all methods ordered by id.
func (s *Methods) List(ctx context.Context) (all []catalogue.Method, err error) {
	err = s.db.read(ctx, func(t *tables) error {
		for _, m := range t.registry.methods {
			all = append(all, keptMethod(m))
		}
		return nil
	})
	slices.SortFunc(all, func(a, b catalogue.Method) int { return cmp.Compare(a.ID, b.ID) })
	return all, err
}

// Add stores a method.
func (s *Methods) Add(ctx context.Context, m catalogue.Method) error {
	return s.db.write(ctx, func(t *tables) error {
		if err := fits(t.registry.methods, m); err != nil {
			return err
		}
		t.registry.methods[m.ID] = keptMethod(m)
		return nil
	})
}

// Remove deletes a method.
func (s *Methods) Remove(ctx context.Context, id catalogue.MethodID) error {
	return s.db.write(ctx, func(t *tables) error {
		if _, there := t.registry.methods[id]; !there {
			return fault.New(fault.NotFound, "", "no such method")
		}
		delete(t.registry.methods, id)
		return nil
	})
}

// Put stores methods, all or none.
func (s *Methods) Put(ctx context.Context, methods []catalogue.Method, replace bool) error {
	return s.db.write(ctx, func(t *tables) error {
		after := maps.Clone(t.registry.methods)
		if replace {
			clear(after)
		}
		for _, m := range methods {
			delete(after, m.ID)
		}
		for _, m := range methods {
			if err := fits(after, m); err != nil {
				return err
			}
			after[m.ID] = keptMethod(m)
		}
		t.registry.methods = after
		return nil
	})
}

// fits reports whether the id and the path of a method are free.
func fits(methods map[catalogue.MethodID]catalogue.Method, m catalogue.Method) error {
	for _, other := range methods {
		if other.ID == m.ID || other.Path == m.Path {
			return conflict("another method has the id or the path")
		}
	}
	return nil
}

// keptMethod is a copy that shares nothing with m.
func keptMethod(m catalogue.Method) catalogue.Method {
	m.Parameters = append([]string{}, m.Parameters...)
	return m
}
