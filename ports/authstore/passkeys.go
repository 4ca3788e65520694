package authstore

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// Passkeys stores the passkeys of people. A passkey is deleted together with its account. Times are
// kept in UTC with microseconds.
type Passkeys interface {
	// Add stores a new passkey. It returns fault.Conflict if there is one with the credential id.
	// After an error, the transaction that the context carries must end with that error.
	Add(ctx context.Context, p auth.Passkey) error
	// Find returns the passkey with a credential id, or fault.NotFound.
	Find(ctx context.Context, id auth.CredentialID) (auth.Passkey, error)
	// Of returns the passkeys of a person, ordered by CreatedAt and then by id.
	Of(ctx context.Context, user auth.UserID) ([]auth.Passkey, error)
	// Update calls change with a passkey, whose row is locked, and stores what may change: Name,
	// SignCount, BackedUp, LastUsedAt, SuspendedAt. It returns fault.NotFound without a passkey, and
	// the error of change, after which nothing is stored.
	Update(ctx context.Context, id auth.PasskeyID, change func(*auth.Passkey) error) error
	// Remove deletes a passkey of a person, or returns fault.NotFound.
	Remove(ctx context.Context, user auth.UserID, id auth.PasskeyID) error
}
