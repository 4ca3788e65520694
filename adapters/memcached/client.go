// Package memcached keeps counters in memcached 1.6, which has the meta commands: one node or many,
// listed or found by an SRV record (contract L-39, L-42). It does not decide what to do while a
// node is away; it returns fault.Unavailable without delay.
//
// # One command per counter
//
// Increments are not asynchronous, so a limit cannot be exceeded for a moment (contract L-42): a
// hit is one meta arithmetic command that counts, or makes the counter together with its expiry, in
// one step of the node, and answers the count after it. So counts are as exact as in the other
// stores. All calls share a few connections to each node; commands of many calls travel together,
// and no call costs a connection. No client library that is kept does this: the known one asks
// twice for a new counter, takes no context, and opens a connection for each call beyond its idle
// ones.
//
// # Nodes
//
// A key belongs to one node, found from the key and the set of the nodes' names alone (rendezvous hashing), so instances
// with the same list agree whatever its order. A node that comes or goes moves only its own share of the keys, whose
// counters begin anew. Of a dead node the keys are not given to others: its calls fail, and the other nodes' do not.
//
// # Several counters at once
//
// memcached knows no scripts, so AddUnlessOver with several keys is made of steps: it looks at all
// counters; if any hit would be over, only such hits are counted; else all are. When a parallel
// call filled a counter between the two, this one is over after all, and what was counted in the
// others is given back at once (a negative addend stays as it is). A limit never lets more through
// than it allows, and at rest the counts are those of contract L-10. What may happen: in the moment
// before the giving back, another call sees hits too many, and may be refused close to a limit; and
// should the process end or the node fall away in it, the hits stay counted. A call with one key,
// which has one descriptor, is one step and exact.
//
// # What memcached does by itself
//
// Under memory pressure it evicts counters, which begin at zero again; its clock ticks once a second, so counters live up
// to a second longer than asked.
package memcached

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/counter"
)

// Client counts on the nodes. It is safe for concurrent use.
type Client struct {
	ring    *ring
	timeout time.Duration
	calls   sync.Pool // of *call
}

// Open returns a client and what closes it. Nodes that are away, and a record that cannot be looked up, are no error:
// calls report fault.Unavailable until they are there. What is malformed in cfg is an error that names the variable.
func Open(ctx context.Context, cfg Config, log *logrus.Entry) (*Client, func(), error) {
	if err := cfg.Validate(); err != nil {
		return nil, nil, err
	}
	names, err := cfg.addresses()
	if err != nil {
		return nil, nil, err
	}
	var secure func() *tls.Config // nil without TLS
	if cfg.TLS {
		if secure, err = cfg.tlsFiles().Follow(log); err != nil {
			return nil, nil, err
		}
	}
	connect := dialer(cfg.Timeout, secure)
	r := newRing(cfg.Timeout, log, func(name string) *node {
		return openNode(name, cfg.MaxIdleConns, cfg.Timeout, connect, log)
	})
	c := &Client{ring: r, timeout: cfg.Timeout, calls: sync.Pool{New: func() any { return newCall() }}}
	looked := make(chan struct{})
	if cfg.SRV == "" {
		r.set(names)
		close(looked)
	} else {
		resolver := cfg.resolver
		if resolver == nil {
			resolver = net.DefaultResolver
		}
		r.follow(srv{cfg.SRV, cfg.SRVRefresh, resolver}, looked)
	}
	c.await(ctx, looked)
	return c, r.close, nil
}

// dialer returns what connects to a node. The name in a certificate is checked against the host of its address.
func dialer(timeout time.Duration, secure func() *tls.Config) dial {
	plain := &net.Dialer{Timeout: timeout, KeepAlive: pingGap}
	if secure == nil {
		return func(ctx context.Context, address string) (net.Conn, error) {
			return plain.DialContext(ctx, "tcp", address)
		}
	}
	return func(ctx context.Context, address string) (net.Conn, error) {
		d := &tls.Dialer{NetDialer: plain, Config: secure()} // of the files as they are
		return d.DialContext(ctx, "tcp", address)
	}
}

// await gives the nodes a little time to be reached, so that a service that starts beside them does not fail its first
// calls.
func (c *Client) await(ctx context.Context, looked <-chan struct{}) {
	bounded, cancel := context.WithTimeout(ctx, 2*c.timeout)
	defer cancel()
	select {
	case <-looked:
	case <-bounded.Done():
		return
	}
	for _, n := range *c.ring.nodes.Load() {
		n.await(bounded)
	}
}

// Ping implements ports/counter. It succeeds while at least one node answers (contract L-30).
func (c *Client) Ping(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	nodes := *c.ring.nodes.Load()
	results := make(chan error, len(nodes))
	for _, n := range nodes {
		go func() { results <- n.ping(bounded) }()
	}
	failures := make([]error, len(nodes))
	for i := range nodes {
		if failures[i] = <-results; failures[i] == nil {
			return nil
		}
	}
	if len(nodes) == 0 {
		return unavailable(errNoNodes)
	}
	return unavailable(errors.Join(failures...))
}

// Connected tells, without asking, whether any node is there. Each connection is tried once a second, so that a silent
// node is known.
func (c *Client) Connected() bool {
	for _, n := range *c.ring.nodes.Load() {
		if n.up() {
			return true
		}
	}
	return false
}

func check(hits []counter.Hit, after []uint64) error {
	if len(hits) != len(after) {
		return fault.Newf(fault.Internal, "", "%d hits with room for %d counts", len(hits), len(after))
	}
	for i := range hits {
		if !validKey(hits[i].Key) {
			return fault.Newf(fault.Internal, "", "key %d of %d is not 1 to %d printable characters", i+1, len(hits), counter.MaxKey)
		}
	}
	return nil
}

func unavailable(err error) error {
	return fault.Wrap(fault.Unavailable, "", "the counter store does not answer", err)
}
