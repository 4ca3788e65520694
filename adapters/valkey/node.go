package valkey

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/valkey-io/valkey-go"

	"github.com/tollgate-dev/tollgate/ports/counter"
)

// clusterSlots is the number of slots in a cluster.
const clusterSlots = 1 << 14

// node is the state of one server. Each server has its own breaker and its own limit of concurrent
// calls, so that calls to other servers do not wait or fail because of it. Outside clusters one
// node covers all keys.
type node struct {
	breaker   breaker
	calls     atomic.Int64           // in progress
	waiting   atomic.Int64           // calls that wait for room
	freed     chan struct{}          // wakes one that waits
	failedKey atomic.Pointer[string] // a key of a call without an answer, for probes
}

func newNode() *node { return &node{freed: make(chan struct{}, 1)} }

// acquire waits until the node has room for another call. The caller must call release. It takes no
// lock unless it waits.
func (n *node) acquire(ctx context.Context) error {
	if n.tryAcquire() {
		return nil
	}
	n.waiting.Add(1)
	defer n.waiting.Add(-1)
	for !n.tryAcquire() {
		select {
		case <-n.freed:
		case <-ctx.Done():
			n.wakeNext() // it may have been woken
			return fmt.Errorf("wait for earlier calls to the counter store: %w", ctx.Err())
		}
	}
	n.wakeNext() // there may be more room
	return nil
}

// tryAcquire reports whether there was room for a call.
func (n *node) tryAcquire() bool {
	for {
		calls := n.calls.Load()
		if calls >= maxCalls {
			return false
		}
		if n.calls.CompareAndSwap(calls, calls+1) {
			return true
		}
	}
}

// release ends a call.
func (n *node) release() {
	n.calls.Add(-1)
	n.wakeNext()
}

// wakeNext wakes a call that waits, if there is one.
func (n *node) wakeNext() {
	if n.waiting.Load() == 0 {
		return
	}
	select {
	case n.freed <- struct{}{}:
	default: // one is being woken
	}
}

// clusterNodes lists the nodes of a cluster. It may be out of date, which does little harm:
// valkey-go finds the right node by itself, so until the next update only the breaker of the wrong
// node applies to a key.
type clusterNodes struct {
	bySlot [clusterSlots]*node // nil if no node serves the slot
	byID   map[string]*node
}

func (m *managedClient) findNode(key string) *node {
	c := m.cluster.Load()
	if c == nil {
		return m.defaultNode
	}
	if n := c.bySlot[slotOf(key)]; n != nil {
		return n
	}
	return m.defaultNode
}

// findCommonNode returns the node of all hits, or nil if there are several.
func (m *managedClient) findCommonNode(hits []counter.Hit) *node {
	if m.cluster.Load() == nil {
		return m.defaultNode
	}
	n := m.findNode(hits[0].Key)
	for i := range hits[1:] {
		if m.findNode(hits[1+i].Key) != n {
			return nil
		}
	}
	return n
}

// groupKeysByNode returns the keys of each node.
func (m *managedClient) groupKeysByNode(keys []string) map[*node][]string {
	groups := make(map[*node][]string)
	for _, key := range keys {
		n := m.findNode(key)
		groups[n] = append(groups[n], key)
	}
	return groups
}

func (m *managedClient) allNodes() []*node {
	list := []*node{m.defaultNode}
	if c := m.cluster.Load(); c != nil {
		for _, n := range c.byID {
			list = append(list, n)
		}
	}
	return list
}

// openBreakers reports whether the breaker of any node is open, and whether the breakers of all
// nodes that serve keys are.
func (m *managedClient) openBreakers() (some, all bool) {
	list := m.allNodes()
	if len(list) > 1 {
		list = list[1:]
		some = m.defaultNode.breaker.isOpen()
	}
	all = true
	for _, n := range list {
		refuses := n.breaker.isOpen()
		some, all = some || refuses, all && refuses
	}
	return some, all
}

// loadClusterNodes reads from a cluster which node serves which slot. Known nodes keep their state.
// If the cluster does not answer, nothing changes.
func (m *managedClient) loadClusterNodes(ctx context.Context) {
	client := *m.current.Load()
	if client.Mode() != valkey.ClientModeCluster {
		return
	}
	bounded, cancel := context.WithTimeout(ctx, m.dialTimeout)
	defer cancel()
	ranges, err := client.Do(bounded, client.B().ClusterSlots().Build()).ToArray()
	if err != nil || len(ranges) == 0 {
		return
	}
	var known map[string]*node
	if before := m.cluster.Load(); before != nil {
		known = before.byID
	}
	next := &clusterNodes{byID: make(map[string]*node)}
	for i := range ranges {
		next.addSlotRange(&ranges[i], known)
	}
	m.cluster.Store(next)
}

// addSlotRange adds one element of the reply to CLUSTER SLOTS: first slot, last slot, and the
// primary as address, port and ID.
func (c *clusterNodes) addSlotRange(told *valkey.ValkeyMessage, known map[string]*node) {
	fields, err := told.ToArray()
	if err != nil || len(fields) < 3 {
		return
	}
	from, errFrom := fields[0].AsInt64()
	to, errTo := fields[1].AsInt64()
	master, errMaster := fields[2].ToArray()
	if errFrom != nil || errTo != nil || errMaster != nil || len(master) < 3 {
		return
	}
	id, err := master[2].ToString()
	if err != nil {
		return
	}
	n := c.byID[id]
	if n == nil {
		if n = known[id]; n == nil {
			n = newNode()
		}
		c.byID[id] = n
	}
	for slot := max(from, 0); slot <= min(to, clusterSlots-1); slot++ {
		c.bySlot[slot] = n
	}
}

// probeFailedNodes probes all nodes with an open breaker, and closes the breakers of those that
// answer.
func (m *managedClient) probeFailedNodes(ctx context.Context) {
	var all sync.WaitGroup
	for _, n := range m.allNodes() {
		if !n.breaker.isOpen() {
			continue
		}
		all.Go(func() {
			if m.probeNode(ctx, n) && n.breaker.closeIfOpen() {
				m.log.Info("the counter store answers again")
			}
		})
	}
	all.Wait()
}

// probeNode reports whether the node answers. In a cluster it reads a key of a failed call, because
// another node may have taken over the slot of this key, and valkey-go finds out which.
func (m *managedClient) probeNode(ctx context.Context, n *node) bool {
	bounded, cancel := context.WithTimeout(ctx, m.dialTimeout)
	defer cancel()
	client := *m.current.Load()
	command := client.B().Ping().Build()
	if key := n.failedKey.Load(); key != nil && m.cluster.Load() != nil {
		command = client.B().Get().Key(*key).Build()
	}
	err := client.Do(bounded, command).Error()
	return err == nil || valkey.IsValkeyNil(err)
}

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

// probeIdleStore sends a PING if probeWhenIdle is on. A PING without an answer counts as a failed
// call, so that the failure of a store without calls is detected as fast as that of a store in use.
func (m *managedClient) probeIdleStore(ctx context.Context) {
	if _, all := m.openBreakers(); all || !m.probeWhenIdle {
		m.idleProbeFailed = false
		return
	}
	before, err := m.idleProbeFailed, m.pingStore(ctx)
	m.idleProbeFailed = err != nil
	if ctx.Err() != nil || err == nil && !before {
		return
	}
	for _, n := range m.allNodes() {
		if err == nil {
			n.breaker.recordAnswer()
		} else if n.breaker.recordNoAnswer() {
			m.log.WithError(err).Warn("the counter store does not answer; calls fail at once until it answers again")
		}
	}
}

// pingStore sends a PING. In a cluster it sends one to all nodes, and succeeds if any node answers.
func (m *managedClient) pingStore(ctx context.Context) error {
	client := m.current.Load()
	if client == nil {
		return storeUnavailable(errNotConnected)
	}
	bounded, cancel := context.WithTimeout(ctx, m.dialTimeout)
	defer cancel()
	if (*client).Mode() != valkey.ClientModeCluster {
		return sendPing(bounded, *client)
	}
	nodes := (*client).Nodes()
	answers := make(chan error, len(nodes))
	for _, node := range nodes {
		go func() { answers <- sendPing(bounded, node) }()
	}
	err := storeUnavailable(errNotConnected)
	for range nodes {
		if err = <-answers; err == nil {
			return nil
		}
	}
	return err
}

func sendPing(ctx context.Context, client valkey.Client) error {
	if err := client.Do(ctx, client.B().Ping().Build()).Error(); err != nil {
		return storeUnavailable(err)
	}
	return nil
}
