// Package management is the port to the objects that operators manage, one kind like another. What the
// fields of a kind mean, its own hexagon knows.
package management

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/kinds"
)

// Object is a stored object, or one that fields describe.
type Object struct {
	audit.Object // with the fields that Objects.Parse reads, and of a secret a hash as audit.FieldSecret

	Owner string        // of the file that manages it; empty if it was made by hand
	State audit.Details // what else is known of it, which changes while no one changes the object
	Fixed audit.Details // what else is known of it, which stays
}

// Check is a condition on the stored object, nil if there is none, in the transaction that changes it.
// Its error ends the change.
type Check func(current *Object) error

// Change is a change of an object.
type Change struct {
	Fields audit.Details // of the object that is stored in place of the one with its name
	Owner  string        // as Object.Owner; empty keeps the stored one
	Force  bool          // do it even if it locks somebody out, or with all that came of the object
	Check  Check         // optional
}

// Objects are the objects of a kind. It is safe for concurrent use. Its methods return
// fault.Unavailable when the database is not available.
type Objects interface {
	// Kind returns the description of the kind, which no one may change.
	Kind() *kinds.Kind
	// Parse returns the object that fields describe. It returns fault.Invalid, with the name of the
	// field, if one is wrong.
	Parse(fields audit.Details) (Object, error)
	// List returns at most limit objects whose keys are greater than after, ordered by key.
	List(ctx context.Context, after string, limit int) ([]Object, error)
	// Get returns the object with a key, or fault.NotFound.
	Get(ctx context.Context, key string) (Object, error)
	// Put stores an object, and reports whether it is new. One that is the same stays, without an
	// event. A secret that is left out is kept. The errors are those of Parse, of the check, and of
	// the rules of the kind.
	Put(ctx context.Context, c Change) (stored Object, created bool, err error)
	// Remove removes the object with a key. It returns fault.NotFound, and the error of the check of a
	// change, of which the fields and the owner are empty.
	Remove(ctx context.Context, key string, c Change) error
}

// Kinds are the objects of all kinds by the names of their lists.
type Kinds map[string]Objects

// NewKinds returns the objects of some kinds.
func NewKinds(all ...Objects) Kinds {
	k := make(Kinds, len(all))
	for _, one := range all {
		k[one.Kind().List] = one
	}
	return k
}

// Store stores the objects of a kind as its hexagon has them. Its methods join the transaction that the
// context carries, and return fault.Unavailable when the database is not available.
type Store[K ~string, T any] interface {
	// List returns at most limit objects whose keys are greater than after, ordered by the bytes of
	// the key.
	List(ctx context.Context, after K, limit int) ([]T, error)
	// Get returns an object, or fault.NotFound.
	Get(ctx context.Context, key K) (T, error)
	// Count returns how many objects there are.
	Count(ctx context.Context) (int, error)
	// Save stores an object, in place of the one with its key.
	Save(ctx context.Context, one T) error
	// Remove deletes an object, or returns fault.NotFound.
	Remove(ctx context.Context, key K) error
}
