// Package pause contains the waits between attempts. The callers choose how long they are and after
// which errors.
package pause

import (
	"context"
	"net/http"
	"strconv"
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

// RetryAfter returns the wait that a response demands in its Retry-After header (RFC 9110, 10.2.3).
// It returns 0 if there is no header, or if the header is a date.
func RetryAfter(h http.Header) time.Duration {
	seconds, err := strconv.ParseUint(h.Get("Retry-After"), 10, 31)
	if err != nil {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// Backoff is the delay between attempts: none before the first, then 5 ms, and twice as long each
// time. The zero value is before the first attempt.
type Backoff struct{ next time.Duration }

const firstBackoff = 5 * time.Millisecond

// Next returns the delay before the next attempt, at most the given one.
func (b *Backoff) Next(most time.Duration) time.Duration {
	delay := min(b.next, most)
	b.next = min(max(2*b.next, firstBackoff), most)
	return delay
}
