package responsebody

import (
	"errors"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// Config holds the settings of response bodies.
type Config struct {
	// InFlight is the bytes of large responses that may wait in memory for their clients; 0 means no
	// bound, for tests.
	InFlight int
}

// largeSize is the size in bytes from which the memory of a body is counted until the client has
// received it. Smaller bodies are bounded by the number of connections.
const largeSize = 256 << 10

// retryTime is the Retry-After of a response that is refused because the memory is in use. Most
// clients receive a large response in less time.
const retryTime = time.Second

// errMemoryInUse is the cause in the log.
var errMemoryInUse = errors.New("large responses use all of their memory, four times BODIES_IN_FLIGHT")

// Reservation is memory that a large body has reserved. nil is an empty one. It is not safe for
// concurrent use.
type Reservation struct {
	memory *semaphore.Weighted
	size   int
}

// reserve reserves memory for a body of size bytes; a small one needs no reservation. It does not
// wait for memory, because waiting bodies would use memory too. It returns fault.Unavailable if
// there is not enough.
func (s *Sender) reserve(size int) (*Reservation, error) {
	if size < largeSize {
		return nil, nil //nolint:nilnil // nil is an empty reservation
	}
	if !s.memory.TryAcquire(int64(size)) {
		return nil, fault.Wrap(fault.Unavailable, "too many large responses are being sent; try again later",
			errMemoryInUse).
			After(retryTime)
	}
	return &Reservation{s.memory, size}, nil
}

// Release releases the memory.
func (r *Reservation) Release() {
	if r != nil {
		r.memory.Release(int64(r.size))
		r.size = 0
	}
}
