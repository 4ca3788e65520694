// Package challengestore is the port to the records of step-up challenges. It
// keeps codes as the hashes it is given; whether one is right is for the core
// to say.
package challengestore

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// Store keeps challenges. All methods are safe for concurrent use, join a
// transaction that the context carries, and return fault.Unavailable when the
// database is away.
type Store interface {
	// Create adds a challenge.
	Create(ctx context.Context, c auth.Challenge) error
	// Get returns a challenge in any state, or fault.NotFound.
	Get(ctx context.Context, id auth.ChallengeID) (auth.Challenge, error)
	// Update reads the challenge, lets change alter it and stores the result;
	// no other Update of the same challenge comes between, on any instance.
	// When change fails, nothing is stored and its error is returned.
	// fault.NotFound when there is none.
	Update(ctx context.Context, id auth.ChallengeID, change func(*auth.Challenge) error) error
	// DeleteExpired removes the challenges that ended before the time; it
	// returns how many.
	DeleteExpired(ctx context.Context, before time.Time) (int, error)
}
