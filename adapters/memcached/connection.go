package memcached

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/internal/deadline"
)

const (
	// maxPending is the maximum number of pipelines in progress on one connection. Further ones
	// wait.
	maxPending = 4096
	readBuffer = 32 << 10
	// timeoutsToClose is the number of consecutive timeouts after which a connection is closed.
	timeoutsToClose = 5
	// pingInterval is the time between two pings on a connection, which detect a dead node even
	// without calls.
	pingInterval = time.Second
)

var (
	errTimeout        = errors.New("memcached did not answer in time")
	errClosed         = errors.New("the connection is closed")
	errConnectionLost = errors.New("the connection broke during the call")
)

// pipeline is a batch of commands with their responses. The caller waits for done. If it stops
// waiting, it leaves the pipeline to the connection and must not use it again.
type pipeline struct {
	commands  []byte
	responses []response
	err       error
	done      chan struct{} // receives once, after responses or err are set
}

func newPipeline() *pipeline { return &pipeline{done: make(chan struct{}, 1)} }

// reset prepares the pipeline for n responses.
func (c *pipeline) reset(n int) {
	c.commands, c.err = c.commands[:0], nil
	if cap(c.responses) < n {
		c.responses = make([]response, n)
	}
	c.responses = c.responses[:n]
}

// connection is a connection that many callers share. It writes their commands in the order of
// send, as many at a time as there are, and reads the responses in the same order.
type connection struct {
	raw     net.Conn
	timeout time.Duration // of a write, and of a ping

	mu          sync.Mutex
	unsent      []byte // commands that are not written yet
	closed      bool
	permits     chan struct{}  // one element for each pipeline in pending
	pending     chan *pipeline // pipelines whose responses are due, in order
	unsentReady chan struct{}  // wakes writeLoop after unsent has grown

	timeouts atomic.Int32  // consecutive timeouts
	ended    chan struct{} // closed when the connection is closed
	cause    error         // of the close; set before ended is closed
	once     sync.Once
}

// newConnection starts a connection over raw. closeWith ends it.
func newConnection(raw net.Conn, timeout time.Duration) *connection {
	c := &connection{
		raw: raw, timeout: timeout, permits: make(chan struct{}, maxPending), pending: make(chan *pipeline, maxPending),
		unsentReady: make(chan struct{}, 1), ended: make(chan struct{}),
	}
	go c.writeLoop()
	go c.readLoop()
	return c
}

// closeWith closes the connection for the given cause. Pipelines in progress fail.
func (c *connection) closeWith(cause error) {
	c.once.Do(func() {
		c.cause = cause
		close(c.ended)
		_ = c.raw.Close() // the connection is closed anyway
	})
}

// send queues the commands of a pipeline. It waits for room until ctx ends. If it returns an error,
// nothing was sent.
func (c *connection) send(ctx context.Context, k *pipeline) error {
	select {
	case c.permits <- struct{}{}:
	default:
		select {
		case c.permits <- struct{}{}:
		case <-c.ended:
			return errClosed
		case <-ctx.Done():
			return c.endOfContext(ctx)
		}
	}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		<-c.permits
		return errClosed
	}
	c.unsent = append(c.unsent, k.commands...)
	c.pending <- k // never blocks: it has as much room as permits
	c.mu.Unlock()
	select {
	case c.unsentReady <- struct{}{}:
	default: // writeLoop is already awake
	}
	return nil
}

// receive waits for the responses of a pipeline that was sent. If abandoned is true, the connection
// still uses the pipeline.
func (c *connection) receive(ctx context.Context, k *pipeline) (abandoned bool, err error) {
	select {
	case <-k.done:
		return false, k.err
	case <-ctx.Done():
		return true, c.endOfContext(ctx)
	}
}

// endOfContext returns the error of a call whose context has ended. If the call had the whole
// timeout, it counts the timeout, and closes the connection after several in a row, so that few
// calls wait for a node that does not answer.
func (c *connection) endOfContext(ctx context.Context) error {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("wait for memcached: %w", ctx.Err())
	}
	if deadline.HasWhole(ctx) && c.timeouts.Add(1) >= timeoutsToClose {
		c.closeWith(errTimeout)
	}
	return errTimeout
}

// writeLoop writes the queued commands until the connection is closed.
func (c *connection) writeLoop() {
	var spare []byte
	for {
		select {
		case <-c.unsentReady:
		case <-c.ended:
			return
		}
		c.mu.Lock()
		next := c.unsent
		c.unsent = spare[:0]
		c.mu.Unlock()
		_ = c.raw.SetWriteDeadline(time.Now().Add(c.timeout)) // Write returns the error
		if _, err := c.raw.Write(next); err != nil {
			c.closeWith(fmt.Errorf("write: %w", err))
			return
		}
		if cap(next) > 1<<20 {
			next = nil // release the memory of a burst
		}
		spare = next
	}
}

// readLoop reads responses until the connection is closed. It then fails the remaining pipelines.
func (c *connection) readLoop() {
	r := bufio.NewReaderSize(c.raw, readBuffer)
	for c.readPipeline(r) {
	}
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	for {
		select {
		case k := <-c.pending:
			c.complete(k, errConnectionLost)
		default:
			return
		}
	}
}

// readPipeline reads the responses of the next pipeline. It returns false if the connection is
// closed.
func (c *connection) readPipeline(r *bufio.Reader) bool {
	// Peek also detects a closed connection while no pipeline is due.
	if _, err := r.Peek(1); err != nil {
		c.closeWith(fmt.Errorf("read: %w", err))
		return false
	}
	var k *pipeline
	select {
	case k = <-c.pending:
	default:
		c.closeWith(errInvalidResponse)
		return false
	}
	for i := range k.responses {
		var err error
		if k.responses[i], err = readResponse(r); err != nil {
			c.closeWith(err)
			c.complete(k, errConnectionLost)
			return false
		}
	}
	if c.timeouts.Load() != 0 {
		c.timeouts.Store(0)
	}
	c.complete(k, nil)
	return true
}

// complete hands a pipeline back to its caller.
func (c *connection) complete(k *pipeline, err error) {
	<-c.permits
	k.err = err
	k.done <- struct{}{}
}

// pingServer sends a ping and waits for the response, at most for the timeout.
func (c *connection) pingServer(ctx context.Context) error {
	k := newPipeline()
	k.reset(1)
	k.commands = append(k.commands, pingCommand...)
	bounded, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	if err := c.send(bounded, k); err != nil {
		return err
	}
	if _, err := c.receive(bounded, k); err != nil {
		return err
	}
	return k.responses[0].err
}
