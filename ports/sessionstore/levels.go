package sessionstore

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// Levels lowers the trust of sessions. Same promises as Store.
type Levels interface {
	// Lower sets every living session that the filter names and that is above the level to the level. It returns the ids of those
	// that it lowered.
	Lower(ctx context.Context, which Filter, to auth.TrustLevel, at time.Time) ([]auth.SessionID, error)
}
