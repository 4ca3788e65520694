package registrystore

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/registry"
)

// Grants stores grants. Its methods join the transaction that the context carries. A change is
// visible to the next call on every instance.
type Grants interface {
	// Add stores a grant with an ID of its own, or returns fault.Conflict if the holder has it from the
	// same provider, or likewise without one. Of parallel calls for one grant, one succeeds. After an
	// error, the transaction that the context carries must end with that error.
	Add(ctx context.Context, g registry.GrantRecord) error
	// Remove deletes the grant that the provider of the given one gives, or the one without a provider,
	// or returns fault.NotFound.
	Remove(ctx context.Context, g registry.GrantRecord) error
	// Of returns the grants of a holder, each once, ordered by action, then pattern.
	Of(ctx context.Context, holder registry.Holder) ([]registry.Grant, error)
	// Records returns the grants that a query selects as they are stored, ordered by holder, action,
	// pattern and provider, those without one first.
	Records(ctx context.Context, q GrantQuery) ([]registry.GrantRecord, error)
	// Manage stores the owner of the file that manages the grant without a provider, or returns
	// fault.NotFound.
	Manage(ctx context.Context, g registry.Grant, by string) error
}

// GrantQuery selects grants. Zero fields do not narrow it.
type GrantQuery struct {
	ID registry.GrantID
	// Holders are the only ones whose grants are selected; empty for all.
	Holders []registry.Holder
	After   registry.GrantRecord
	// ManagedBy is the owner of the file or the provider that manages the grants.
	ManagedBy string
	Action    registry.Action
	Limit     int // 0 = no limit
}

// GrantsOf returns the grants of items by their holders, with one read.
func GrantsOf[T any](
	ctx context.Context, s Grants, items []T, holder func(*T) registry.Holder,
) (map[registry.Holder][]registry.GrantRecord, error) {
	by := map[registry.Holder][]registry.GrantRecord{}
	if len(items) == 0 {
		return by, nil
	}
	holders := each.MapRef(items, holder)
	all, err := s.Records(ctx, GrantQuery{Holders: holders})
	for _, r := range all {
		by[r.Holder] = append(by[r.Holder], r)
	}
	return by, err
}

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
