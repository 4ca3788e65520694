package sessionstore

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// History tells of the sessions from which habits are learnt. Same promises as Store.
type History interface {
	// Trusted returns the sessions of a user that are or ended at LIMITED_TRUST or above, newest first, at most limit
	// (decisions 2.3).
	Trusted(ctx context.Context, user auth.UserID, limit int) ([]auth.Session, error)
}
