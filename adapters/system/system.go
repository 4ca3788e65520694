// Package system implements the ports for time and randomness with the operating system. Tests use
// fakes instead.
package system

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/google/wire"

	"github.com/tollgate-dev/tollgate/adapters/internal/pause"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/secrets"
)

// Set provides the system's clock and randomness.
var Set = wire.NewSet(
	wire.InterfaceValue(new(clock.Clock), Clock{}), wire.InterfaceValue(new(clock.Waiter), Clock{}),
	wire.InterfaceValue(new(secrets.Entropy), Entropy{}),
)

// Clock is the clock of the operating system.
type Clock struct{}

// Now returns the current time.
func (Clock) Now() time.Time { return time.Now() }

// Wait returns after d, or earlier if ctx ends. It reports whether d has passed.
func (Clock) Wait(ctx context.Context, d time.Duration) bool { return pause.For(ctx, d) }

// Entropy returns random bytes of the operating system.
type Entropy struct{}

// Fill overwrites p with random bytes. Since Go 1.24 crypto/rand ends the process instead of
// returning an error.
func (Entropy) Fill(p []byte) {
	_, _ = rand.Read(p) // never returns an error, by its documentation
}
