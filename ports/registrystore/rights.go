package registrystore

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/registry"
)

// RightRequests stores requests of people for rights, which end with the person. It is safe for concurrent use. Its
// methods join the transaction that the context carries, and return fault.Unavailable when the database is not available.
type RightRequests interface {
	// Add stores an open request, and deletes the decided ones of the person but for the last
	// registry.MaxDecidedRights. It returns fault.Conflict if an open one of the person is for the same, or if
	// registry.MaxOpenRights are open; that holds for parallel calls too.
	Add(ctx context.Context, r registry.RightRequest) error
	// Decide stores the state of a request and what was decided. It returns fault.Conflict if the request is not open
	// any more, or is of the person who decides: of parallel calls one succeeds.
	Decide(ctx context.Context, r registry.RightRequest) error
	// List returns the requests that a query selects, the last ones first, or the first ones of those that are open.
	List(ctx context.Context, q RightQuery) ([]registry.RightRequest, error)
}

// RightQuery selects requests for rights. Zero fields do not narrow it, but for the limit.
type RightQuery struct {
	ID    registry.RightRequestID
	Who   registry.Holder
	Open  bool
	Limit int
}
