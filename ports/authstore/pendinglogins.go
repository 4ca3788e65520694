package authstore

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// PendingLogins stores logins whose password was right and whose second factor is still missing: at
// most one for each user and device identity.
type PendingLogins interface {
	// Put stores a pending login and replaces the one of the same user and device identity. It also
	// deletes the user's pending logins that had expired when p was created, so that their number
	// is bounded.
	Put(ctx context.Context, p auth.PendingLogin) error
	// Find returns a pending login, expired or not, or fault.NotFound.
	Find(ctx context.Context, user auth.UserID, identity auth.DeviceIdentity) (auth.PendingLogin, error)
	// Take deletes a pending login. Of parallel calls, on all instances, exactly one succeeds; the
	// others and later ones return fault.NotFound.
	Take(ctx context.Context, user auth.UserID, identity auth.DeviceIdentity) error
	// RemoveAll deletes all pending logins of a user.
	RemoveAll(ctx context.Context, user auth.UserID) error
	// DeleteExpired deletes the pending logins that expired before the given time and returns how
	// many it deleted.
	DeleteExpired(ctx context.Context, before time.Time) (int, error)
}
