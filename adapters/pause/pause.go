// Package pause waits between tries, and no longer than anybody is interested. How long, and after what, is the caller's business.
package pause

import (
	"context"
	"time"
)

// For returns after d, or as soon as the context ends. It reports whether d has passed.
func For(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
