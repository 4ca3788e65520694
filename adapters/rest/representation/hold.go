package representation

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// Config is what an operator may set of answers to reads.
type Config struct {
	// InFlight of 0 is no bound, for tests; Validate refuses it.
	InFlight int `env:"ANSWERS_IN_FLIGHT" envDefault:"268435456" desc:"total bytes of large responses that may wait in memory for their clients; large are responses of 256 KiB or more to reads and to status changes of many versions; one more large response is 503"`
}

// minInFlight is room for a few answers of the greatest size.
const minInFlight = 16 << 20

// Validate tells what is out of range.
func (c Config) Validate() error {
	if c.InFlight < minInFlight {
		return fmt.Errorf("ANSWERS_IN_FLIGHT: %d is less than %d", c.InFlight, minInFlight)
	}
	return nil
}

// countedSize is the size in bytes from which on an answer is counted while it
// waits for its client. Those that are smaller are bounded by how many
// connections there may be.
const countedSize = 256 << 10

// busyTime is what a caller is asked to wait when there are too many large
// answers. Most are taken in less.
const busyTime = time.Second

// errCountedOut is the cause that the log has.
var errCountedOut = errors.New("ANSWERS_IN_FLIGHT is used up")

// hold is what an answer has taken of the memory for large ones. nil has taken
// nothing. It is for one goroutine at a time.
type hold struct {
	memory *semaphore.Weighted
	size   int
}

// hold takes memory for an answer, which is not worth it for a small one.
// fault.Unavailable when there is not enough: a queue would hold answers too.
func (f *Forms) hold(size int) (*hold, error) {
	if size < countedSize {
		return nil, nil //nolint:nilnil // nil has taken nothing
	}
	if !f.memory.TryAcquire(int64(size)) {
		return nil, fault.Wrap(fault.Unavailable, "", "too many large answers are being sent, try again later", errCountedOut).After(busyTime)
	}
	return &hold{f.memory, size}, nil
}

// keep gives back all but size bytes.
func (h *hold) keep(size int) {
	if h != nil && size < h.size {
		h.memory.Release(int64(h.size - size))
		h.size = size
	}
}
