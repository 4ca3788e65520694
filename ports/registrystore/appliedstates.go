package registrystore

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/registry"
)

// AppliedStates stores the states of files that were applied last. Its methods join the transaction
// that the context carries. Times are kept in UTC with microseconds.
type AppliedStates interface {
	// Save stores a state in place of that of the same owner.
	Save(ctx context.Context, s registry.AppliedState) error
	// List returns the states of all owners, ordered by the bytes of the owner.
	List(ctx context.Context) ([]registry.AppliedState, error)
}
