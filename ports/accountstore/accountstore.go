// Package accountstore is the port to the records of people who sign in. It
// keeps passwords as the hashes it is given and compares none.
package accountstore

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// Store keeps accounts. All methods are safe for concurrent use, join a
// transaction that the context carries, and return fault.Unavailable when the
// database is away.
type Store interface {
	// Create adds an account. A taken e-mail address is fault.Conflict.
	Create(ctx context.Context, a auth.Account) error
	// Get returns the account of an id, or fault.NotFound.
	Get(ctx context.Context, id auth.UserID) (auth.Account, error)
	// ByEmail returns the account of an address, or fault.NotFound.
	ByEmail(ctx context.Context, email auth.Email) (auth.Account, error)
	// Update reads the account, lets change alter it and stores the result;
	// no other Update of the same account comes between. When change fails,
	// nothing is stored and its error is returned. ID, Email and CreatedAt
	// stay as they are. fault.NotFound when there is none.
	Update(ctx context.Context, id auth.UserID, change func(*auth.Account) error) error
	// List returns accounts ordered by e-mail address, those after the given
	// one, at most limit.
	List(ctx context.Context, after auth.Email, limit int) ([]auth.Account, error)
}
