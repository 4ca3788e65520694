// Package lockoutstore is the port to the counts of failed sign-ins. What
// locks, and for how long, is for the core to say.
package lockoutstore

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// Store keeps one auth.Lockout a subject. It is safe for concurrent use and
// joins a transaction that the context carries.
type Store interface {
	// Update reads the subject's lockout (the zero value when there is none),
	// lets change alter it and stores the result; no other Update of the same
	// subject comes between, on any instance. When change fails, nothing is
	// stored and its error is returned.
	Update(ctx context.Context, key auth.LockoutKey, change func(*auth.Lockout) error) error
	// Get returns the subject's lockout, the zero value when there is none. Every
	// Update that succeeded before the call is in it, on all instances.
	Get(ctx context.Context, key auth.LockoutKey) (auth.Lockout, error)
	// DeleteBefore removes the lockouts whose last failure was, and whose lock
	// ended, before the time, and those that were reset; it returns how many.
	DeleteBefore(ctx context.Context, t time.Time) (int, error)
}
