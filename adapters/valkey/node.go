package valkey

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/valkey-io/valkey-go"

	"github.com/tollgate-dev/tollgate/ports/counter"
)

// slots is how many parts a cluster's keys fall into.
const slots = 1 << 14

// node is one server of the store, which fails apart from the others: it has a breaker and turns of its own, so that
// calls to the others neither wait for it nor are refused because of it. Outside clusters there is one for all keys.
type node struct {
	breaker breaker
	turns   chan struct{}          // one for each call that is with it
	wanted  atomic.Pointer[string] // a key that it did not answer for
}

func newNode() *node { return &node{turns: make(chan struct{}, maxCalls)} }

// take waits for a turn, which is to be given back.
func (n *node) take(ctx context.Context) error {
	select {
	case n.turns <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for calls before: %w", ctx.Err())
	}
}

func (n *node) giveBack() { <-n.turns }

// cluster is the nodes of a cluster. It may lag behind the cluster: the client follows the slots by itself, so the worst
// is that a node's breaker covers keys that have left it, until the next look.
type cluster struct {
	bySlot [slots]*node // nil where nobody serves a slot
	byID   map[string]*node
}

// nodeOf returns the node that a key belongs to.
func (l *link) nodeOf(key string) *node {
	c := l.cluster.Load()
	if c == nil {
		return l.whole
	}
	command := (*l.client.Load()).B().Get().Key(key).Build()
	if n := c.bySlot[command.Slot()%slots]; n != nil {
		return n
	}
	return l.whole
}

// nodeOfAll returns the node that all hits belong to, nil when there are several.
func (l *link) nodeOfAll(hits []counter.Hit) *node {
	if l.cluster.Load() == nil {
		return l.whole
	}
	n := l.nodeOf(hits[0].Key)
	for i := range hits[1:] {
		if l.nodeOf(hits[1+i].Key) != n {
			return nil
		}
	}
	return n
}

// byNode parts hits, by their indices, as the nodes do.
func (l *link) byNode(hits []counter.Hit) map[*node][]int {
	groups := make(map[*node][]int)
	for i := range hits {
		n := l.nodeOf(hits[i].Key)
		groups[n] = append(groups[n], i)
	}
	return groups
}

// keysByNode parts keys as the nodes do.
func (l *link) keysByNode(keys []string) map[*node][]string {
	groups := make(map[*node][]string)
	for _, key := range keys {
		n := l.nodeOf(key)
		groups[n] = append(groups[n], key)
	}
	return groups
}

// nodes returns all nodes.
func (l *link) nodes() []*node {
	list := []*node{l.whole}
	if c := l.cluster.Load(); c != nil {
		for _, n := range c.byID {
			list = append(list, n)
		}
	}
	return list
}

// away reports whether any node, and whether every node that serves keys, does not answer.
func (l *link) away() (some, all bool) {
	list := l.nodes()
	if len(list) > 1 {
		list = list[1:]
		some = l.whole.breaker.refuses()
	}
	all = true
	for _, n := range list {
		refuses := n.breaker.refuses()
		some, all = some || refuses, all && refuses
	}
	return some, all
}

// learn asks a cluster who serves which slot. Nodes that were known keep their state. A cluster that does not answer
// leaves what was known.
func (l *link) learn(ctx context.Context) {
	client := *l.client.Load()
	if client.Mode() != valkey.ClientModeCluster {
		return
	}
	bounded, cancel := context.WithTimeout(ctx, l.dial)
	defer cancel()
	ranges, err := client.Do(bounded, client.B().ClusterSlots().Build()).ToArray()
	if err != nil || len(ranges) == 0 {
		return
	}
	var known map[string]*node
	if before := l.cluster.Load(); before != nil {
		known = before.byID
	}
	next := &cluster{byID: make(map[string]*node)}
	for i := range ranges {
		next.add(&ranges[i], known)
	}
	l.cluster.Store(next)
}

// add takes in one range as CLUSTER SLOTS tells it: first and last slot, then the master as address, port and id.
func (c *cluster) add(told *valkey.ValkeyMessage, known map[string]*node) {
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
	for slot := max(from, 0); slot <= min(to, slots-1); slot++ {
		c.bySlot[slot] = n
	}
}

// probe asks every node that callers do not wait for whether it is back.
func (l *link) probe(ctx context.Context) {
	var all sync.WaitGroup
	for _, n := range l.nodes() {
		if !n.breaker.refuses() {
			continue
		}
		all.Go(func() {
			if l.answers(ctx, n) && n.breaker.reset() {
				l.log.Info("the store answers again")
			}
		})
	}
	all.Wait()
}

// answers asks for a key that the node did not answer for: in a cluster another node may have taken the key's slot over,
// and the client finds out which.
func (l *link) answers(ctx context.Context, n *node) bool {
	bounded, cancel := context.WithTimeout(ctx, l.dial)
	defer cancel()
	client := *l.client.Load()
	question := client.B().Ping().Build()
	if key := n.wanted.Load(); key != nil && l.cluster.Load() != nil {
		question = client.B().Get().Key(*key).Build()
	}
	err := client.Do(bounded, question).Error()
	return err == nil || valkey.IsValkeyNil(err)
}
