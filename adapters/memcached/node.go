package memcached

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/internal/wait"
)

// retryGap is how long a node that is away is left alone between attempts to reach it.
const retryGap = 250 * time.Millisecond

var (
	errAway    = errors.New("memcached cannot be reached; trying again until it can")
	errNoNodes = errors.New("no node of memcached is known")
)

// dial connects to an address.
type dial func(ctx context.Context, address string) (net.Conn, error)

// node is one server of the list, and the connections to it, each kept by a goroutine that makes it anew when it ends.
type node struct {
	name    string // host:port, by which keys are mapped to it
	hash    uint64 // of the name
	timeout time.Duration
	dial    dial
	log     *logrus.Entry

	slots []atomic.Pointer[connection]
	next  atomic.Uint32
	state state
	end   context.CancelFunc
	done  sync.WaitGroup
}

func openNode(name string, size int, timeout time.Duration, d dial, log *logrus.Entry) *node {
	n := &node{
		name: name, hash: xxhash.Sum64String(name), timeout: timeout, dial: d, log: log.WithField("node", name),
		slots: make([]atomic.Pointer[connection], size), state: newState(),
	}
	life, end := context.WithCancel(context.Background())
	n.end = end
	for i := range n.slots {
		n.done.Go(func() { n.keep(life, &n.slots[i]) })
	}
	return n
}

// close ends the node's connections.
func (n *node) close() {
	n.end()
	n.done.Wait()
}

// keep keeps one connection until life ends.
func (n *node) keep(life context.Context, slot *atomic.Pointer[connection]) {
	for life.Err() == nil {
		c, err := n.connect(life)
		if err != nil {
			if n.state.failed() && life.Err() == nil {
				n.log.WithError(err).Warn("memcached cannot be reached; trying again until it can")
			}
			wait.For(life, retryGap)
			continue
		}
		slot.Store(c)
		if n.state.connected() {
			n.log.Info("memcached is connected")
		}
		began := time.Now()
		watch(life, c)
		slot.Store(nil)
		silent := errors.Is(c.cause, errSilent)
		if n.state.lost(silent) && life.Err() == nil {
			n.log.WithError(c.cause).Warn("memcached does not answer; calls do not wait for it until it does")
		}
		if time.Since(began) < retryGap {
			wait.For(life, retryGap) // what takes connections only to close them is not asked all the time
		}
	}
}

// connect makes a connection over which the node has answered.
func (n *node) connect(life context.Context) (*connection, error) {
	ctx, cancel := context.WithTimeout(life, n.timeout)
	defer cancel()
	raw, err := n.dial(ctx, n.name)
	if err != nil {
		return nil, err
	}
	c := newConnection(raw, n.timeout)
	if err := c.ping(ctx); err != nil {
		c.fail(err)
		return nil, err
	}
	return c, nil
}

// watch tries a connection every now and then until it or life ends.
func watch(life context.Context, c *connection) {
	tick := time.NewTicker(pingGap)
	defer tick.Stop()
	for {
		select {
		case <-life.Done():
			c.fail(errRetired)
			return
		case <-c.ended:
			return
		case <-tick.C:
			if err := c.ping(life); err != nil {
				c.fail(err)
			}
		}
	}
}

// connection returns a live connection. When none is left, it waits for the first attempt to make one anew, until the
// call's timer or the context ends; of a node that is known to be away it says so at once.
func (n *node) connection(ctx context.Context, k *call) (*connection, error) {
	for {
		changed, away := n.state.observe()
		if c := n.live(); c != nil {
			return c, nil
		}
		if away {
			return nil, errAway
		}
		select {
		case <-changed:
		case <-k.timer.C:
			return nil, errSilent
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// await waits until the node is reached or known to be away.
func (n *node) await(ctx context.Context) {
	for {
		changed, away := n.state.observe()
		if away || n.up() {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// ping asks the node for an answer over one of its connections.
func (n *node) ping(ctx context.Context) error {
	c := n.live()
	if c == nil {
		return errAway
	}
	return c.ping(ctx)
}

// live returns one of the connections, another each time, or nil.
func (n *node) live() *connection {
	start := n.next.Add(1)
	for i := range uint32(len(n.slots)) {
		c := n.slots[(start+i)%uint32(len(n.slots))].Load()
		if c == nil {
			continue
		}
		select {
		case <-c.ended: // its keeper is about to take it away
		default:
			return c
		}
	}
	return nil
}

// up reports whether there is a live connection.
func (n *node) up() bool { return n.live() != nil }

// state is what is known of a node: how many connections there are, and whether it is away, that is, whether the last
// attempt to connect failed or it fell silent.
type state struct {
	mu          sync.Mutex
	connections int
	away        bool
	changed     chan struct{} // closed at the next change
}

func newState() state { return state{changed: make(chan struct{})} }

// change tells those who wait. The lock is held.
func (s *state) change() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// connected notes a connection, and reports whether it is the first after none.
func (s *state) connected() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connections++
	first := s.connections == 1 && s.away
	s.away = false
	s.change()
	return first
}

// lost notes the end of a connection, and reports whether the node turned away by it.
func (s *state) lost(silent bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connections--
	return s.turn(silent)
}

// failed notes an attempt to connect that failed, and reports whether the node turned away by it.
func (s *state) failed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.turn(true)
}

// turn makes the node one that is away, if bad is so and no connection is left.
func (s *state) turn(bad bool) bool {
	turned := bad && s.connections == 0 && !s.away
	s.away = s.away || turned
	s.change()
	return turned
}

// observe returns whether the node is away, and what is closed at the next change after that.
func (s *state) observe() (changed <-chan struct{}, away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed, s.away
}
