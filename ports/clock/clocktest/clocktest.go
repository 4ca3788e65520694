// Package clocktest has a clock for tests. It has no contract tests, because a clock makes no
// promise that they could check.
package clocktest

import (
	"sync"
	"time"
)

// Manual is a clock that stops until Advance moves it. It is safe for concurrent use.
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
