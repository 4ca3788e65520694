package event

import (
	"fmt"
	"time"
)

// Schedule says when deliveries are tried again.
type Schedule struct {
	// First is the time from the first attempt to the second. It doubles with each attempt, up to
	// an hour, or First if that is longer.
	First time.Duration
	// For is how long a delivery is tried.
	For time.Duration
}

// The bounds of a schedule.
const (
	minRetry = time.Second
	maxRetry = 30 * 24 * time.Hour
	maxDelay = time.Hour // between two attempts, unless First is longer
)

// Validate returns an error that begins with the name of the first field that is out of range.
func (s Schedule) Validate() error {
	if s.For < minRetry || s.For > maxRetry {
		return fmt.Errorf("For: %v is not between %v and %v", s.For, minRetry, maxRetry)
	}
	return nil
}

// Delay returns the time from an attempt, the first of which is 1, to the next one.
func (s Schedule) Delay(attempt int) time.Duration {
	bound := max(s.First, maxDelay)
	delay := s.First
	for range attempt - 1 {
		if delay >= bound/2 {
			return bound
		}
		delay *= 2
	}
	return delay
}
