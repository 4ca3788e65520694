package authority

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/audit"
)

// ManagedObject is an object with the owner of the file that manages it; empty without one.
type ManagedObject struct {
	audit.Object

	Owner string
}

// ManagedKinds are the kinds of objects of other hexagons that a state in a file declares.
type ManagedKinds struct {
	Providers   ManagedObjects // of company sign-in
	AccessRules ManagedObjects
}

// ManagedObjects are objects of another hexagon that a state in a file declares. The object of a
// secret has a hash in the field audit.FieldSecret.
type ManagedObjects interface {
	// Parse returns the object that fields describe. It returns fault.Invalid, with the name of the
	// field at the beginning, if one is wrong.
	Parse(fields audit.Details) (audit.Object, error)
	// Stored returns all objects, ordered by key.
	Stored(ctx context.Context) ([]ManagedObject, error)
	// Save stores the object that fields describe, with an owner, in place of the one with its key. A
	// secret that is left out is kept.
	Save(ctx context.Context, fields audit.Details, owner string) error
	// Remove removes the object with a key.
	Remove(ctx context.Context, key string) error
}
