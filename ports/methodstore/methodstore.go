// Package methodstore is the port to the table of methods. Which method a
// request means is for the core to say.
package methodstore

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/catalogue"
)

// Store keeps the methods. All methods are safe for concurrent use, join a transaction that the
// context carries, and return fault.Unavailable when the database is away. A new database holds the
// methods of contract M-9.
type Store interface {
	// List returns all methods ordered by id.
	List(ctx context.Context) ([]catalogue.Method, error)
	// Add stores a method. A taken id or path is fault.Conflict.
	Add(ctx context.Context, m catalogue.Method) error
	// Remove deletes a method, or returns fault.NotFound.
	Remove(ctx context.Context, id catalogue.MethodID) error
	// Put stores methods, replacing those of the same id; with replace, all others are removed. A
	// path taken by another id is fault.Conflict, and nothing changes.
	Put(ctx context.Context, methods []catalogue.Method, replace bool) error
}
