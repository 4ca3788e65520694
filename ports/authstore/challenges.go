package authstore

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// Challenges stores step-up challenges, with hashes of their codes.
type Challenges interface {
	// Create stores a new challenge.
	Create(ctx context.Context, c auth.Challenge) error
	// Get returns a challenge in any state, or fault.NotFound.
	Get(ctx context.Context, id auth.ChallengeID) (auth.Challenge, error)
	// Update changes a challenge, or returns fault.NotFound.
	Update(ctx context.Context, id auth.ChallengeID, change func(*auth.Challenge) error) error
	// DeleteExpired deletes the challenges that expired before the given time and returns how many
	// it deleted.
	DeleteExpired(ctx context.Context, before time.Time) (int, error)
}
