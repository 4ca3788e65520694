// Package servicestore is the port to the database for service accounts. Package registrystore has the
// other stores of the registry, and the contract suite of both.
package servicestore

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/registry/service"
)

// Services stores service accounts. Its methods join the transaction that the context carries. A
// change is visible to the next call on every instance. Times are kept in UTC with microseconds;
// empty claims are read as nil.
type Services interface {
	// List returns at most limit accounts whose names are greater than after, ordered by name.
	List(ctx context.Context, after service.Name, limit int) ([]service.Account, error)
	// Get returns an account, or fault.NotFound.
	Get(ctx context.Context, name service.Name) (service.Account, error)
	// Put lets change make an account, or modify the one that there is, and stores the result. It
	// returns the error of change unchanged, and stores nothing then. change gets nil if there is no
	// account. Of parallel calls for one name, each sees the result of the one before it; change may
	// be called more than once. CreatedAt stays as it was first stored. The tokens that workloads of
	// the account got are deleted.
	Put(ctx context.Context, name service.Name, change func(*service.Account) (service.Account, error)) error
	// Remove deletes an account with its tokens and its grants, or returns fault.NotFound.
	Remove(ctx context.Context, name service.Name) error
}
