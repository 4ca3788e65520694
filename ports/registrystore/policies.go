package registrystore

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
)

// Policies stores the policies of publishers. Its methods join the transaction that the context
// carries. A change is visible to the next call on every instance. Times are kept in UTC with
// microseconds; an empty map of claims is read as nil.
type Policies interface {
	// Add stores a policy. It returns fault.Conflict if there is one with its ID.
	Add(ctx context.Context, p publisher.Policy) error
	// Remove deletes a policy, or returns fault.NotFound.
	Remove(ctx context.Context, id registry.PolicyID) error
	// Find returns the policies that match a query, ordered by ID.
	Find(ctx context.Context, q PolicyQuery) ([]publisher.Policy, error)
	// Update replaces a policy by what change makes of it, or returns fault.NotFound. It returns an
	// error of change unchanged, and stores nothing then. Of parallel updates of one policy, each
	// sees the result of the one before it. change may be called more than once.
	Update(ctx context.Context, id registry.PolicyID, change func(*publisher.Policy) error) error
}

// PolicyQuery selects policies. Zero fields do not narrow it.
type PolicyQuery struct {
	IDs           []registry.PolicyID // one of these; nil does not narrow, empty selects nothing
	Method        publisher.Method
	Domain        publisher.Domain
	Issuer        string
	CheckedBefore time.Time // policies by domain whose CheckedAt is before this
	After         registry.PolicyID
	Limit         int // 0 = no limit
}
