// Package listing holds the use case of the open-data methods listing: which
// methods there are. It neither builds their addresses nor shapes the answer.
package listing

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/catalogue"
)

// Methods is what the listing needs of ports/methodstore.
type Methods interface {
	// List returns all methods ordered by id.
	List(ctx context.Context) ([]catalogue.Method, error)
}

// Lister lists the methods. It is safe for concurrent use.
type Lister struct{ methods Methods }

// New returns a lister over the store of methods.
func New(methods Methods) *Lister { return &Lister{methods} }

// List returns all methods, ordered by id, as they are stored at this moment (contract M-2).
// fault.Unavailable when the database is away.
func (l *Lister) List(ctx context.Context) ([]catalogue.Method, error) {
	return l.methods.List(ctx)
}
