package memcached

import (
	"context"
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
