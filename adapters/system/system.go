// Package system answers the ports of time and randomness from the operating system. Tests use fakes of the ports instead.
package system

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/internal/wait"
)

// Clock tells the operating system's time.
type Clock struct{}

// Now returns the present time.
func (Clock) Now() time.Time { return time.Now() }

// Wait returns after d, or as soon as the context ends. It reports whether d has passed.
func (Clock) Wait(ctx context.Context, d time.Duration) bool { return wait.For(ctx, d) }

// Entropy gives the operating system's random bytes.
type Entropy struct{}

// Fill overwrites p with random bytes. Since Go 1.24 crypto/rand ends the process rather than fail.
func (Entropy) Fill(p []byte) {
	_, _ = rand.Read(p) // never returns an error, by its documentation
}
