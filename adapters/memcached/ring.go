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

	"github.com/tollgate-dev/tollgate/adapters/internal/wait"
)

const (
	// lookupTimeout bounds one look-up of the SRV record.
	lookupTimeout = 5 * time.Second
	// lookupGap is the least time between two look-ups.
	lookupGap = 100 * time.Millisecond
	// lookupRetry is how soon a look-up that failed is made again, when nothing is known yet.
	lookupRetry = time.Second
)

// ring is the list of nodes in force, and what keeps it.
type ring struct {
	open    func(name string) *node
	timeout time.Duration // of a call
	log     *logrus.Entry
	nodes   atomic.Pointer[[]*node] // never nil; changed by one goroutine only

	life context.Context // of the goroutines
	end  context.CancelFunc
	done sync.WaitGroup
}

func newRing(timeout time.Duration, log *logrus.Entry, open func(name string) *node) *ring {
	r := &ring{open: open, timeout: timeout, log: log}
	r.life, r.end = context.WithCancel(context.Background())
	r.nodes.Store(&[]*node{})
	return r
}

// of returns the node of a key: the one whose hash together with the key's is greatest (rendezvous hashing). So a key's
// node depends on the set of names alone, not on their order, and a node that comes or goes moves only its own keys.
func (r *ring) of(key string) (*node, error) {
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
		if weight := mix(h ^ n.hash); weight > greatest {
			best, greatest = n, weight
		}
	}
	return best, nil
}

// mix spreads each bit of its argument over all of the result (the finalizer of SplitMix64).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// set puts a list of names in force. Nodes that stay keep their connections; those that go finish their calls first.
func (r *ring) set(names []string) {
	before := *r.nodes.Load()
	kept := make(map[string]*node, len(before))
	for _, n := range before {
		kept[n.name] = n
	}
	after := make([]*node, len(names))
	for i, name := range names {
		if after[i] = kept[name]; after[i] == nil {
			after[i] = r.open(name)
		}
		delete(kept, name)
	}
	r.nodes.Store(&after)
	for _, gone := range kept {
		r.done.Go(func() { r.retire(gone) })
	}
}

// retire closes a node once the calls that chose it are over.
func (r *ring) retire(n *node) {
	wait.For(r.life, r.timeout)
	n.close()
}

// follow looks up the record and keeps the list by it, until the ring is closed. It closes tried after the first look-up.
func (r *ring) follow(s srv, tried chan<- struct{}) {
	r.done.Go(func() {
		known := r.refresh(s)
		close(tried)
		for r.life.Err() == nil {
			switch {
			case !known:
				wait.For(r.life, lookupRetry)
			case s.refresh == 0:
				return
			default:
				wait.For(r.life, max(s.refresh, lookupGap))
			}
			known = r.refresh(s) || known
		}
	})
}

// refresh looks up once. A failure leaves the list as it is.
func (r *ring) refresh(s srv) bool {
	names, err := s.lookup(r.life)
	if err != nil {
		if r.life.Err() == nil {
			r.log.WithError(err).Warn("MEMSTORE_SRV cannot be looked up; the nodes stay as they are")
		}
		return false
	}
	if slices.EqualFunc(*r.nodes.Load(), names, func(n *node, name string) bool { return n.name == name }) {
		return true
	}
	r.set(names)
	r.log.WithField("nodes", strings.Join(names, ",")).Info("the nodes of memcached")
	return true
}

// close ends everything.
func (r *ring) close() {
	r.end()
	r.done.Wait()
	for _, n := range *r.nodes.Load() {
		n.close()
	}
}

// srv is a record that names the nodes.
type srv struct {
	name     string
	refresh  time.Duration // 0 = looked up once
	resolver *net.Resolver
}

// lookup returns the names of the nodes in order. Priority and weight say nothing here: every key has its one node.
func (s srv) lookup(ctx context.Context) ([]string, error) {
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
