// Package passwords is the port to the hashing of passwords. Which passwords are good enough is a rule of core/auth, not of this
// port.
//
// Answers to the port are checked by [github.com/tollgate-dev/tollgate/ports/passwords/passwordstest].
package passwords

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// Hasher hashes and verifies passwords. It is safe for concurrent use. As hashing is costly on purpose, it bounds how many run
// and wait at once: beyond that every method returns fault.Unavailable with RetryAfter, and the context's error when it ends
// while the call waits (decisions 2.1).
type Hasher interface {
	// Hash returns a hash with a fresh salt and the present parameters. It is fault.Invalid for a password longer than any that
	// can be set.
	Hash(ctx context.Context, p auth.Password) (auth.PasswordHash, error)
	// Verify tells whether the hash is of the password and, if so, whether it was made with lesser parameters than the present
	// ones and should be renewed. A password that is too long never matches and takes no less time. What does not match takes no
	// less time than VerifyNone does, also where the hash was made with lesser parameters. A hash that cannot be read is
	// fault.Internal.
	Verify(ctx context.Context, h auth.PasswordHash, p auth.Password) (match, stale bool, err error)
	// VerifyNone takes as long as Verify of a hash with the present parameters, and matches nothing.
	VerifyNone(ctx context.Context, p auth.Password) error
}
