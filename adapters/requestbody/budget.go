// Package requestbody receives the bodies of HTTP requests, and the messages of gRPC calls, in
// bounded memory. The HTTP server hands over a request when its header has arrived; its body is read
// only after the request was counted and its announced length was checked, and takes its memory from
// one budget. The package does not know what bodies mean.
package requestbody

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// Config holds the setting of request bodies.
type Config struct {
	// InFlight of 0 means no bound, for tests. Validate rejects it.
	InFlight int `env:"BODIES_IN_FLIGHT" envDefault:"67108864" desc:"total bytes of request bodies that may be in memory, of all requests to the API and to the rate limit HTTP endpoint and of unfinished gRPC messages together, from 8388608; one more body is 503. Bodies of more than 32 KiB use three quarters of it at most, and those of one client of the API a quarter, above which they are 429"`
}

// minInFlight allows a few bodies of the greatest size, also to one client.
const minInFlight = 8 << 20

// Validate returns an error that names the setting if it is out of range.
func (c Config) Validate() error {
	if c.InFlight < minInFlight {
		return fmt.Errorf("BODIES_IN_FLIGHT: %d is less than %d", c.InFlight, minInFlight)
	}
	return nil
}

// smallSize is the greatest size of a body that may use the whole budget. What larger bodies must
// leave free lets people sign in while documents use up their part.
const smallSize = 32 << 10

// retryTime is the Retry-After of a request without memory for its body. Most bodies are received
// and handled in less time.
const retryTime = time.Second

// Errors without memory.
var (
	errInUse = fault.Wrap(fault.Unavailable, "too many request bodies are being received; try again later",
		errors.New("request bodies use all of BODIES_IN_FLIGHT")).After(retryTime)
	errShare = fault.New(fault.Exhausted, "too many large requests at the same time").WithCode("rate_limit_exceeded").
			After(retryTime)
)

// Budget is the memory for the bodies of all requests that are being received or handled. It is
// safe for concurrent use.
type Budget struct {
	size int

	mu       sync.Mutex
	used     int
	byClient map[string]int
}

// NewBudget returns an unused budget.
func NewBudget(c Config) *Budget {
	b := &Budget{size: c.InFlight, byClient: map[string]int{}}
	if c.InFlight == 0 {
		b.size = math.MaxInt
	}
	return b
}

// reservation is the memory of one body. It is not safe for concurrent use.
type reservation struct {
	budget *Budget
	client string // empty for a client without a share of its own
	size   int
}

// grow reserves n bytes more for a body whose buffer then has size bytes. It does not wait for
// memory, because waiting bodies would use memory too.
func (r *reservation) grow(n, size int) error {
	b, limit := r.budget, r.budget.size
	if size > smallSize {
		limit = limit / 4 * 3
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.client != "" && b.byClient[r.client]+n > b.size/4 {
		return errShare
	}
	if b.used+n > limit {
		return errInUse
	}
	b.used += n
	if r.client != "" {
		b.byClient[r.client] += n
	}
	r.size += n
	return nil
}

// shrink gives n bytes back.
func (r *reservation) shrink(n int) {
	b := r.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
	r.size -= n
	if r.client == "" {
		return
	}
	if b.byClient[r.client] -= n; b.byClient[r.client] == 0 {
		delete(b.byClient, r.client)
	}
}
