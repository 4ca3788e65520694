package valkey

import "sync/atomic"

// failuresToOpen is the number of consecutive calls without an answer after which calls fail at
// once.
const failuresToOpen = 5

// breaker is the circuit breaker of one node. It opens after failuresToOpen consecutive calls
// without an answer, and calls then fail at once. A background probe closes it again when the node
// answers. The zero value is closed. Reading it costs one atomic load.
type breaker struct {
	failures atomic.Int32
	open     atomic.Bool
}

// isOpen reports whether calls should fail at once.
func (b *breaker) isOpen() bool { return b.open.Load() }

// recordAnswer resets the count of failures.
func (b *breaker) recordAnswer() {
	if b.failures.Load() != 0 {
		b.failures.Store(0)
	}
}

// recordNoAnswer counts a call without an answer, and reports whether it opened the breaker.
func (b *breaker) recordNoAnswer() bool {
	return b.failures.Add(1) >= failuresToOpen && b.open.CompareAndSwap(false, true)
}

// closeIfOpen closes the breaker, and reports whether it was open.
func (b *breaker) closeIfOpen() bool {
	b.failures.Store(0)
	return b.open.CompareAndSwap(true, false)
}
