package valkey

import "sync/atomic"

// tripAfter is how many calls in a row must fail for want of an answer before callers stop waiting.
const tripAfter = 5

// breaker tells callers not to wait for a store that does not answer. It opens after tripAfter failures in a row and
// stays open until it is told that the store answers again; the link finds that out, so that no caller waits for it. The
// zero value is closed. Asking it costs one atomic load.
type breaker struct {
	failures atomic.Int32
	open     atomic.Bool
}

// refuses reports whether a call should fail at once.
func (b *breaker) refuses() bool { return b.open.Load() }

// answered notes that the store answered.
func (b *breaker) answered() {
	if b.failures.Load() != 0 {
		b.failures.Store(0)
	}
}

// silent notes that the store did not answer, and reports whether that opened the breaker.
func (b *breaker) silent() bool {
	return b.failures.Add(1) >= tripAfter && b.open.CompareAndSwap(false, true)
}

// reset closes the breaker, and reports whether it was open.
func (b *breaker) reset() bool {
	b.failures.Store(0)
	return b.open.CompareAndSwap(true, false)
}
