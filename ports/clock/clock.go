// Package clock is the port through which the core reads the time and waits.
package clock

import (
	"context"
	"time"
)

// Clock returns the time.
type Clock interface {
	// Now returns the current time. Within a process it goes back only if the operating system's
	// clock does.
	Now() time.Time
}

// Waiter waits. It is safe for concurrent use.
type Waiter interface {
	// Wait returns after d, or as soon as the context ends. It reports whether d has passed.
	Wait(ctx context.Context, d time.Duration) bool
}
