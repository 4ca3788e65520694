package memcached

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/internal/pause"
)

const (
	// lookupTimeout is the maximum time of a lookup of the SRV record.
	lookupTimeout = 5 * time.Second
	// minLookupInterval is the minimum time between two lookups.
	minLookupInterval = 100 * time.Millisecond
	// lookupRetryInterval is the time before the next lookup, until the first one succeeds.
	lookupRetryInterval = time.Second
)

// ring is the current list of nodes.
type ring struct {
	openNode func(name string) *node
	timeout  time.Duration // of a pipeline
	log      *logrus.Entry
	nodes    atomic.Pointer[[]*node] // never nil; changed by one goroutine only

	ctx    context.Context // ends when closeAll is called
	cancel context.CancelFunc
	done   sync.WaitGroup
}

func newRing(timeout time.Duration, log *logrus.Entry, open func(name string) *node) *ring {
	r := &ring{openNode: open, timeout: timeout, log: log}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.nodes.Store(&[]*node{})
	return r
}

// findNode returns the node of a key: the node whose hash, combined with that of the key, is
// greatest (rendezvous hashing). So the node depends only on the set of names, not on their order,
// and a node that is added or removed moves only its own keys.
func (r *ring) findNode(key string) (*node, error) {
	nodes := *r.nodes.Load()
	switch len(nodes) {
	case 0:
		return nil, errNoNodes
	case 1:
		return nodes[0], nil
	}
	h := xxhash.Sum64String(key)
	best, greatest := nodes[0], uint64(0)
	for _, n := range nodes {
		if weight := mixBits(h ^ n.hash); weight > greatest {
			best, greatest = n, weight
		}
	}
	return best, nil
}

// mixBits distributes each bit of x over the whole result (the finalizer of SplitMix64).
func mixBits(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// setNodes replaces the list of nodes. Nodes in both lists keep their connections; removed nodes
// finish their calls first.
func (r *ring) setNodes(names []string) {
	before := *r.nodes.Load()
	kept := make(map[string]*node, len(before))
	for _, n := range before {
		kept[n.name] = n
	}
	after := make([]*node, len(names))
	for i, name := range names {
		if after[i] = kept[name]; after[i] == nil {
			after[i] = r.openNode(name)
		}
		delete(kept, name)
	}
	r.nodes.Store(&after)
	for _, removed := range kept {
		r.done.Go(func() { r.closeLater(removed) })
	}
}

// closeLater closes a node after the calls that use it have ended.
func (r *ring) closeLater(n *node) {
	pause.For(r.ctx, r.timeout)
	n.closeNode()
}

// followRecord looks up the SRV record, repeatedly if it has a refresh interval, until the ring is
// closed. It closes tried after the first lookup.
func (r *ring) followRecord(s srvRecord, tried chan<- struct{}) {
	r.done.Go(func() {
		known := r.refreshNodes(s)
		close(tried)
		for r.ctx.Err() == nil {
			switch {
			case !known:
				pause.For(r.ctx, lookupRetryInterval)
			case s.refresh == 0:
				return
			default:
				pause.For(r.ctx, max(s.refresh, minLookupInterval))
			}
			known = r.refreshNodes(s) || known
		}
	})
}

// refreshNodes looks up the record once and updates the list. If the lookup fails, the list does
// not change.
func (r *ring) refreshNodes(s srvRecord) bool {
	names, err := s.lookupNodes(r.ctx)
	if err != nil {
		if r.ctx.Err() == nil {
			r.log.WithError(err).Warn("MEMSTORE_SRV cannot be looked up; the list of memcached nodes does not change")
		}
		return false
	}
	if slices.EqualFunc(*r.nodes.Load(), names, func(n *node, name string) bool { return n.name == name }) {
		return true
	}
	r.setNodes(names)
	r.log.WithField("nodes", strings.Join(names, ",")).Info("the list of memcached nodes has changed")
	return true
}

// closeAll closes all nodes and waits for the goroutines.
func (r *ring) closeAll() {
	r.cancel()
	r.done.Wait()
	for _, n := range *r.nodes.Load() {
		n.closeNode()
	}
}

// srvRecord is an SRV record that lists the nodes.
type srvRecord struct {
	name     string
	refresh  time.Duration // 0 = looked up once
	resolver *net.Resolver
}

// lookupNodes returns the names of the nodes in alphabetical order. Priority and weight are
// ignored, because each key has exactly one node.
func (s srvRecord) lookupNodes(ctx context.Context) ([]string, error) {
	bounded, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	_, records, err := s.resolver.LookupSRV(bounded, "", "", s.name)
	if err != nil {
		return nil, fmt.Errorf("look up %s: %w", s.name, err)
	}
	names := make([]string, 0, len(records))
	for _, record := range records {
		if record.Port != 0 && record.Target != "." {
			names = append(names, nodeName(record.Target, record.Port))
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) == 0 || len(names) > maxNodes {
		return nil, fmt.Errorf("look up %s: %d nodes, want 1 to %d", s.name, len(names), maxNodes)
	}
	return names, nil
}

// retryInterval is the greatest time between attempts to reach a node. The first come sooner.
const retryInterval = 250 * time.Millisecond

var (
	errUnreachable = errors.New("memcached cannot be reached; trying again until it answers")
	errNoNodes     = errors.New("no memcached node is known; check MEMSTORE_SRV")
)

// dialFunc connects to an address.
type dialFunc func(ctx context.Context, address string) (net.Conn, error)

// node is one memcached server. It has a fixed number of connections, and a goroutine for each that
// connects again when it ends.
type node struct {
	name    string // host:port; with the key, it determines which keys the node has
	hash    uint64 // of the name
	timeout time.Duration
	dial    dialFunc
	log     *logrus.Entry

	slots []atomic.Pointer[connection]
	next  atomic.Uint32
	state nodeState
	end   context.CancelFunc
	done  sync.WaitGroup
}

func openNode(name string, size int, timeout time.Duration, d dialFunc, log *logrus.Entry) *node {
	n := &node{
		name: name, hash: xxhash.Sum64String(name), timeout: timeout, dial: d, log: log.WithField("node", name),
		slots: make([]atomic.Pointer[connection], size), state: newNodeState(),
	}
	ctx, end := context.WithCancel(context.Background())
	n.end = end
	for i := range n.slots {
		n.done.Go(func() { n.maintainConnection(ctx, &n.slots[i]) })
	}
	return n
}

// closeNode closes the connections of the node.
func (n *node) closeNode() {
	n.end()
	n.done.Wait()
}

// maintainConnection keeps one connection open until ctx ends.
func (n *node) maintainConnection(ctx context.Context, slot *atomic.Pointer[connection]) {
	var delay pause.Backoff
	for ctx.Err() == nil {
		c, err := n.openConnection(ctx)
		if err != nil {
			if n.state.recordFailure() && ctx.Err() == nil {
				n.log.WithError(err).Warn("memcached cannot be reached; trying again until it answers")
			}
			pause.For(ctx, delay.Next(retryInterval))
			continue
		}
		delay = pause.Backoff{}
		slot.Store(c)
		if n.state.addConnection() {
			n.log.Info("memcached is connected")
		}
		began := time.Now()
		pingUntilEnd(ctx, c)
		slot.Store(nil)
		silent := errors.Is(c.cause, errTimeout)
		if n.state.removeConnection(silent) && ctx.Err() == nil {
			n.log.WithError(c.cause).Warn("memcached does not answer; calls fail at once until it answers again")
		}
		if time.Since(began) < retryInterval {
			pause.For(ctx, retryInterval) // do not connect in a loop to a server that closes connections at once
		}
	}
}

// openConnection opens a connection and waits for the response to a ping.
func (n *node) openConnection(ctx context.Context) (*connection, error) {
	bounded, cancel := context.WithTimeout(ctx, n.timeout)
	defer cancel()
	raw, err := n.dial(bounded, n.name)
	if err != nil {
		return nil, err
	}
	c := newConnection(raw, n.timeout)
	if err := c.pingServer(bounded); err != nil {
		c.closeWith(err)
		return nil, err
	}
	return c, nil
}

// pingUntilEnd sends a ping every pingInterval until the connection or ctx ends. It closes the
// connection if a ping fails.
func pingUntilEnd(ctx context.Context, c *connection) {
	tick := time.NewTicker(pingInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			c.closeWith(errClosed)
			return
		case <-c.ended:
			return
		case <-tick.C:
			if err := c.pingServer(ctx); err != nil {
				c.closeWith(err)
			}
		}
	}
}

// waitForConnection returns an open connection. Otherwise it waits for the next attempt to
// connect, until ctx ends. If the node is known to be
// unreachable, it returns an error at once.
func (n *node) waitForConnection(ctx context.Context) (*connection, error) {
	for {
		changed, away := n.state.observe()
		if c := n.pickConnection(); c != nil {
			return c, nil
		}
		if away {
			return nil, errUnreachable
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// waitUntilTried waits until the node is connected or known to be unreachable.
func (n *node) waitUntilTried(ctx context.Context) {
	for {
		changed, away := n.state.observe()
		if away || n.isConnected() {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// pingNode sends a ping over one of the connections.
func (n *node) pingNode(ctx context.Context) error {
	c := n.pickConnection()
	if c == nil {
		return errUnreachable
	}
	return c.pingServer(ctx)
}

// pickConnection returns one of the open connections in rotation, or nil.
func (n *node) pickConnection() *connection {
	start := n.next.Add(1)
	for i := range uint32(len(n.slots)) {
		c := n.slots[(start+i)%uint32(len(n.slots))].Load()
		if c == nil {
			continue
		}
		select {
		case <-c.ended: // maintainConnection is about to remove it
		default:
			return c
		}
	}
	return nil
}

// isConnected reports whether there is an open connection.
func (n *node) isConnected() bool { return n.pickConnection() != nil }

// nodeState is the number of open connections of a node, and whether it is unreachable: the last
// attempt to connect failed, or the last connection timed out.
type nodeState struct {
	mu          sync.Mutex
	connections int
	unreachable bool
	changed     chan struct{} // closed at the next change
}

func newNodeState() nodeState { return nodeState{changed: make(chan struct{})} }

// notifyWaiters wakes all goroutines that wait for a change. The lock must be held.
func (s *nodeState) notifyWaiters() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// addConnection records a new connection, and reports whether the node was unreachable before.
func (s *nodeState) addConnection() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connections++
	first := s.connections == 1 && s.unreachable
	s.unreachable = false
	s.notifyWaiters()
	return first
}

// removeConnection records the end of a connection, and reports whether the node became
// unreachable.
func (s *nodeState) removeConnection(silent bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connections--
	return s.markUnreachable(silent)
}

// recordFailure records a failed attempt to connect, and reports whether the node became
// unreachable.
func (s *nodeState) recordFailure() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.markUnreachable(true)
}

// markUnreachable marks the node as unreachable if failed is true and no connection is left. It
// reports whether this changed the state.
func (s *nodeState) markUnreachable(failed bool) bool {
	turned := failed && s.connections == 0 && !s.unreachable
	s.unreachable = s.unreachable || turned
	s.notifyWaiters()
	return turned
}

// observe returns whether the node is unreachable, and a channel that is closed at the next change.
func (s *nodeState) observe() (changed <-chan struct{}, away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed, s.unreachable
}
