// Package grantstore is the port to the grants that let people change the
// registry. What a pattern covers is for the core to say.
package grantstore

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/registry"
)

// Store keeps grants. All methods are safe for concurrent use, join a
// transaction that the context carries, and return fault.Unavailable when the
// database is away. A change counts from the next call on, on every instance.
type Store interface {
	// Add stores a grant, or returns fault.Conflict when it is there already. Of two
	// callers at once that add the same grant, one succeeds. The transaction that
	// the context carries must end with that error.
	Add(ctx context.Context, g registry.Grant) error
	// Remove deletes a grant, or returns fault.NotFound.
	Remove(ctx context.Context, g registry.Grant) error
	// Of returns the grants of a holder, ordered by action, then pattern.
	Of(ctx context.Context, holder registry.Holder) ([]registry.Grant, error)
	// List returns all grants, ordered by holder, action and pattern, those
	// behind after, at most limit. The zero grant begins at the start.
	List(ctx context.Context, after registry.Grant, limit int) ([]registry.Grant, error)
}
