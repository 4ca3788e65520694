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
)

const (
	// maxPending bounds the calls that are with a node over one connection; further ones wait their turn.
	maxPending = 4096
	readBuffer = 32 << 10
	// tripAfter is how many calls in a row must go unanswered before a connection counts as dead.
	tripAfter = 5
	// pingGap is how often a connection is tried, so that a silent node is known also when nobody calls.
	pingGap = time.Second
)

var (
	errSilent   = errors.New("memcached does not answer in time")
	errRetired  = errors.New("the connection is closed")
	errLostCall = errors.New("the connection broke during the call")
)

// call is commands that travel together, and what came back. The one who makes it waits for done; who gives up waiting
// leaves it to the connection.
type call struct {
	commands []byte
	answers  []answer
	err      error
	done     chan struct{} // receives once, when answers or err are there
	timer    *time.Timer
}

func newCall() *call {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	return &call{done: make(chan struct{}, 1), timer: timer}
}

// reset makes room for n answers.
func (c *call) reset(n int) {
	c.commands, c.err = c.commands[:0], nil
	if cap(c.answers) < n {
		c.answers = make([]answer, n)
	}
	c.answers = c.answers[:n]
}

// connection is one connection that many calls share: their commands go out in the order in which they came, as many at a
// time as there are, and answers come back in that order.
type connection struct {
	raw     net.Conn
	timeout time.Duration // of a write

	mu      sync.Mutex
	out     []byte // what is to be written next
	broken  bool
	turns   chan struct{} // one for each call in pending
	pending chan *call    // calls that wait for their answers, in the order of their commands
	wake    chan struct{} // tells the writer that there is something in out

	unanswered atomic.Int32  // calls in a row that gave up waiting
	ended      chan struct{} // closed when the connection is of no use any more
	cause      error         // why, after ended is closed
	once       sync.Once
}

// newConnection starts a connection over raw. It ends by fail.
func newConnection(raw net.Conn, timeout time.Duration) *connection {
	c := &connection{
		raw: raw, timeout: timeout, turns: make(chan struct{}, maxPending), pending: make(chan *call, maxPending),
		wake: make(chan struct{}, 1), ended: make(chan struct{}),
	}
	go c.write()
	go c.read()
	return c
}

// fail ends the connection. Calls that wait are told.
func (c *connection) fail(cause error) {
	c.once.Do(func() {
		c.cause = cause
		close(c.ended)
		_ = c.raw.Close() // it is given up in any case
	})
}

// begin sends a call's commands. It waits for its turn until the call's timer or the context ends; then, and when the
// connection is broken, nothing was sent.
func (c *connection) begin(ctx context.Context, k *call) error {
	select {
	case c.turns <- struct{}{}:
	default:
		select {
		case c.turns <- struct{}{}:
		case <-c.ended:
			return errRetired
		case <-k.timer.C:
			c.silent()
			return errSilent
		case <-ctx.Done():
			return fmt.Errorf("wait for calls before: %w", ctx.Err())
		}
	}
	c.mu.Lock()
	if c.broken {
		c.mu.Unlock()
		<-c.turns
		return errRetired
	}
	c.out = append(c.out, k.commands...)
	c.pending <- k // there is room: it holds as many as there are turns
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default: // the writer has been told already
	}
	return nil
}

// finish waits for the answers of a call that was begun. gone tells that the call still belongs to the connection.
func (c *connection) finish(ctx context.Context, k *call) (gone bool, err error) {
	select {
	case <-k.done:
		return false, k.err
	case <-k.timer.C:
		c.silent()
		return true, errSilent
	case <-ctx.Done():
		return true, fmt.Errorf("wait for memcached: %w", ctx.Err())
	}
}

// silent notes a call that was not answered in time. Of a node that stopped answering nobody shall wait for longer than a
// few calls.
func (c *connection) silent() {
	if c.unanswered.Add(1) >= tripAfter {
		c.fail(errSilent)
	}
}

// write writes what calls left, until the connection ends.
func (c *connection) write() {
	var spare []byte
	for {
		select {
		case <-c.wake:
		case <-c.ended:
			return
		}
		c.mu.Lock()
		next := c.out
		c.out = spare[:0]
		c.mu.Unlock()
		_ = c.raw.SetWriteDeadline(time.Now().Add(c.timeout)) // the write itself tells what is wrong
		if _, err := c.raw.Write(next); err != nil {
			c.fail(fmt.Errorf("write: %w", err))
			return
		}
		if cap(next) > 1<<20 {
			next = nil // a burst's memory is not kept
		}
		spare = next
	}
}

// read hands answers to the calls in their order, until the connection ends; then it tells the calls that are left.
func (c *connection) read() {
	r := bufio.NewReaderSize(c.raw, readBuffer)
	for c.readOne(r) {
	}
	c.mu.Lock()
	c.broken = true
	c.mu.Unlock()
	for {
		select {
		case k := <-c.pending:
			c.settle(k, errLostCall)
		default:
			return
		}
	}
}

// readOne reads the answers of the next call. It is false when the connection has ended.
func (c *connection) readOne(r *bufio.Reader) bool {
	// An end of the connection is noticed while no call waits, too.
	if _, err := r.Peek(1); err != nil {
		c.fail(fmt.Errorf("read: %w", err))
		return false
	}
	var k *call
	select {
	case k = <-c.pending:
	default:
		c.fail(errOutOfStep)
		return false
	}
	for i := range k.answers {
		var err error
		if k.answers[i], err = readAnswer(r); err != nil {
			c.fail(err)
			c.settle(k, errLostCall)
			return false
		}
	}
	if c.unanswered.Load() != 0 {
		c.unanswered.Store(0)
	}
	c.settle(k, nil)
	return true
}

// settle tells the waiting side of a call.
func (c *connection) settle(k *call, err error) {
	<-c.turns
	k.err = err
	k.done <- struct{}{}
}

// ping asks the node for an answer within the timeout.
func (c *connection) ping(ctx context.Context) error {
	k := newCall()
	k.reset(1)
	k.commands = append(k.commands, ping...)
	k.timer.Reset(c.timeout)
	defer k.timer.Stop()
	if err := c.begin(ctx, k); err != nil {
		return err
	}
	if _, err := c.finish(ctx, k); err != nil {
		return err
	}
	return k.answers[0].err
}
