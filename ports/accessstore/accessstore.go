// Package accessstore is the port to the rules by which calls of servers are decided.
package accessstore

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/access"
)

// Rules stores the rules. Its methods join the transaction that the context carries, and return
// fault.Unavailable when the database is not available. A change is visible to the next call on
// every instance, and changes registrystore.Revision.Access.
type Rules interface {
	// List returns at most limit rules whose names are greater than after, ordered by the bytes of
	// the name.
	List(ctx context.Context, after access.RuleName, limit int) ([]access.Rule, error)
	// Get returns a rule, or fault.NotFound.
	Get(ctx context.Context, name access.RuleName) (access.Rule, error)
	// Count returns how many rules there are.
	Count(ctx context.Context) (int, error)
	// Save stores a rule, in place of the one with its name.
	Save(ctx context.Context, r access.Rule) error
	// Remove deletes a rule, or returns fault.NotFound.
	Remove(ctx context.Context, name access.RuleName) error
}
