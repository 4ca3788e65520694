package authstore

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// Accounts stores the accounts of people who sign in, with password hashes that it never compares.
type Accounts interface {
	// Create stores a new account. It returns fault.Conflict when another account has the e-mail
	// address.
	Create(ctx context.Context, a auth.Account) error
	// Get returns an account by its id, or fault.NotFound.
	Get(ctx context.Context, id auth.UserID) (auth.Account, error)
	// ByEmail returns an account by its e-mail address, or fault.NotFound.
	ByEmail(ctx context.Context, email auth.Email) (auth.Account, error)
	// Update changes an account, or returns fault.NotFound. Changes of ID, Email and CreatedAt are
	// ignored.
	Update(ctx context.Context, id auth.UserID, change func(*auth.Account) error) error
	// List returns at most limit accounts whose e-mail address is greater than after, ordered by
	// e-mail address.
	List(ctx context.Context, after auth.Email, limit int) ([]auth.Account, error)
}
