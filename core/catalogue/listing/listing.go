// Package listing holds the use case of the open-data methods listing. It neither builds the
// addresses of methods nor formats the answer.
package listing

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/catalogue"
)

// Methods is the part of ports/methodstore that the listing calls.
type Methods interface {
	// List returns all methods ordered by id.
	List(ctx context.Context) ([]catalogue.Method, error)
}

// Lister lists the methods. It is safe for concurrent use.
type Lister struct{ methods Methods }

// New returns a lister over the store of methods.
func New(methods Methods) *Lister { return &Lister{methods} }

// List returns all methods, ordered by id, as they are stored now (contract M-2). It returns
// fault.Unavailable when the database fails.
func (l *Lister) List(ctx context.Context) ([]catalogue.Method, error) {
	return l.methods.List(ctx)
}
