// Package singleuse is the port that remembers what was used once, on all instances together, for
// example a signature or the ID of a token.
//
// [github.com/tollgate-dev/tollgate/ports/singleuse/singleusetest] has the contract tests.
package singleuse

import (
	"context"
	"time"
)

// Store remembers keys for some time. It is safe for concurrent use from many processes.
type Store interface {
	// Claim reports whether this is the first claim of key within ttl, which is at least one
	// second. Of concurrent claims of one key, on any instances, exactly one is the first. The key
	// may be any text; the store may keep a hash of it. It returns fault.Unavailable when the store
	// is not available; the key may then count as claimed.
	Claim(ctx context.Context, key string, ttl time.Duration) (first bool, err error)
	// Release gives the first claim of key back, by who made it, so that the next claim is the first
	// unless there were others. It returns fault.Unavailable when the store is not available; the key
	// may then stay claimed.
	Release(ctx context.Context, key string) error
}
