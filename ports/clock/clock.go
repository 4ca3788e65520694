// Package clock is the port through which the core learns the time. Nobody
// waits by it.
package clock

import "time"

// Clock tells the time.
type Clock interface {
	// Now returns the present time. It never goes back within a process by
	// more than the operating system's clock does.
	Now() time.Time
}
