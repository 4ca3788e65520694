// Package system answers the ports of time and randomness from the operating system. Tests use fakes of the ports instead.
package system

import (
	"crypto/rand"
	"time"
)

// Clock tells the operating system's time.
type Clock struct{}

// Now returns the present time.
func (Clock) Now() time.Time { return time.Now() }

// Entropy gives the operating system's random bytes.
type Entropy struct{}

// Fill overwrites p with random bytes. Since Go 1.24 crypto/rand ends the process rather than fail.
func (Entropy) Fill(p []byte) {
	_, _ = rand.Read(p) // never returns an error, by its documentation
}
