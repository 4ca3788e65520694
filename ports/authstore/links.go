package authstore

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// Links stores the hashes of links that were not used yet.
type Links interface {
	// Put stores a link.
	Put(ctx context.Context, l auth.Link) error
	// Find returns the link with the hash, expired or not, or fault.NotFound.
	Find(ctx context.Context, hash auth.TokenHash) (auth.Link, error)
	// Take deletes the link with the hash. Of parallel calls, on all instances, exactly one
	// succeeds; the others and later ones return fault.NotFound.
	Take(ctx context.Context, hash auth.TokenHash) error
	// RemoveAll deletes the links of a user for the purposes. The empty user has those for a setup.
	RemoveAll(ctx context.Context, user auth.UserID, purposes ...auth.LinkPurpose) error
	// DeleteExpired deletes the links that expired before the given time and returns how many it
	// deleted.
	DeleteExpired(ctx context.Context, before time.Time) (int, error)
}
