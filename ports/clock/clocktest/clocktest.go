// Package clocktest has a clock for tests. It is no suite: what a clock tells is
// not to be checked.
package clocktest

import (
	"sync"
	"time"
)

// Manual is a clock that stands still until it is moved. It is safe for
// concurrent use.
type Manual struct {
	mu  sync.Mutex
	now time.Time
}

// NewManual returns a clock that shows a time.
func NewManual(now time.Time) *Manual { return &Manual{now: now} }

// Now returns the time (clock.Clock).
func (m *Manual) Now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

// Advance moves the clock.
func (m *Manual) Advance(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = m.now.Add(d)
}
