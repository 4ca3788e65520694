package secrets

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// PasswordHasher hashes and verifies passwords. It is safe for concurrent use. Hashing is expensive
// on purpose, so the number of calls that run and wait at once is bounded: above it every method
// returns fault.Unavailable with RetryAfter. A call that waits returns the context's error when the
// context ends (contract A-12).
type PasswordHasher interface {
	// Hash returns a hash with a new salt and the configured parameters. It returns fault.Invalid
	// for a password that is longer than any that can be set.
	Hash(ctx context.Context, p auth.Password) (auth.PasswordHash, error)
	// Verify reports whether h is a hash of p, and if so, whether it was made with weaker
	// parameters than the configured ones and should be replaced. A password that is too long never
	// matches and takes no less time. A call that does not match takes no less time than
	// VerifyNone, also when the hash has weaker parameters. A hash that cannot be decoded is
	// fault.Internal.
	Verify(ctx context.Context, h auth.PasswordHash, p auth.Password) (match, stale bool, err error)
	// VerifyNone takes as long as Verify of a hash with the configured parameters. Callers use it
	// for an account that does not exist.
	VerifyNone(ctx context.Context, p auth.Password) error
}
