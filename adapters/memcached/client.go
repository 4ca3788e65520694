// Package memcached stores counters in memcached 1.6, which has the meta commands: on one node or
// several, from a list or an SRV record (contract L-39, L-42). While a node does not answer, calls
// return fault.Unavailable without delay; the caller decides what to do then.
//
// # One command per counter
//
// Increments are synchronous, so a limit cannot be exceeded even for a moment (contract L-42). A
// hit is one meta arithmetic command: it adds to the counter, or creates it with its expiry, in one
// atomic step, and returns the new count. So counts are as exact as in the other stores. All calls
// share a few connections to each node, and the commands of many calls are written together. The
// maintained client libraries do not offer this: the best known one needs two round trips for a new
// counter, has no context parameter, and opens a connection for each call beyond its idle ones.
//
// While a command for a key is in progress, further calls with one hit of this key wait for a
// moment (less than a thirty-second of the timeout) or until it has ended, and the next command
// counts their hits together. Each call gets its own count. A call that gives up while it waits is
// counted.
//
// # Sliding windows and token buckets
//
// Such a hit needs two commands: one reads the state, and one stores the new state unless another
// instance has changed it. In this process one call at a time decides about a key; the hits of all
// calls that came meanwhile are then decided together.
//
// # Nodes
//
// A key belongs to one node, which depends only on the key and the set of node names (rendezvous
// hashing). So instances with the same list agree, in whatever order it is. When a node is added or
// removed, only its own share of the keys moves, and their counters start again. The keys of a dead
// node do not move to other nodes: calls that need it fail, and all others succeed.
//
// # Several counters at once
//
// memcached has no scripts, so a call in the mode AllOrNone with several keys has several steps. It
// reads all counters. If any hit would be over its limit, it counts only such hits; otherwise it
// counts all. If a parallel call filled a counter between the two steps, this call is over the
// limit after all, and it subtracts its hits from the other counters at once (a negative addend is
// not undone). A limit never lets more requests through than it allows, and once no call is in
// progress the counts are those of contract L-10. Before the subtraction, another call may see too
// many hits and be refused close to a limit. If the process ends or the node fails at that moment,
// the hits stay counted. A call with one key, as a request with one descriptor makes, is one step
// and exact.
//
// # Limits of memcached
//
// When memory is short, memcached evicts counters, which then start at zero. Its clock ticks once a
// second, so counters live up to a second longer than requested.
package memcached

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/internal/deadline"
	"github.com/tollgate-dev/tollgate/adapters/internal/merge"
	"github.com/tollgate-dev/tollgate/adapters/internal/tlsfiles"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/counter"
)

// Client is a counter.Store on memcached nodes. It is safe for concurrent use.
type Client struct {
	ring       *ring
	deadlines  *deadline.Source
	pipelines  sync.Pool // of *call
	admissions *admissions
	merged     *merge.Adder[counter.Hit, counter.Result]
}

// Open returns a client and a function that closes it. An unreachable node, or an SRV record that
// cannot be looked up, is not an error: calls return fault.Unavailable until the nodes are
// reachable. If cfg is malformed, the error names the environment variable.
func Open(ctx context.Context, cfg Config, log *logrus.Entry) (*Client, func(), error) {
	if err := cfg.Validate(); err != nil {
		return nil, nil, err
	}
	names, err := cfg.nodeNames()
	if err != nil {
		return nil, nil, err
	}
	var secure func() *tls.Config // nil without TLS
	if cfg.TLS {
		if secure, err = cfg.tlsFiles().Follow(log); err != nil {
			return nil, nil, err
		}
	}
	connect := newDialFunc(cfg.Timeout, secure)
	r := newRing(cfg.Timeout, log, func(name string) *node {
		return openNode(name, cfg.MaxIdleConns, cfg.Timeout, connect, log)
	})
	c := &Client{
		ring: r, deadlines: deadline.NewSource(cfg.Timeout), admissions: newAdmissions(), pipelines: sync.Pool{
			New: func() any { return newPipeline() },
		},
	}
	c.merged = merge.New(cfg.Timeout, c.countTogether)
	looked := make(chan struct{})
	if cfg.SRV == "" {
		r.setNodes(names)
		close(looked)
	} else {
		resolver := cmp.Or(cfg.resolver, net.DefaultResolver)
		r.followRecord(srvRecord{cfg.SRV, cfg.SRVRefresh, resolver}, looked)
	}
	c.waitForNodes(ctx, looked)
	return c, r.closeAll, nil
}

// OpenCounters is Open for the counter store of a deployment.
func OpenCounters(ctx context.Context, cfg Config, log *logrus.Entry) (counter.Chosen, func(), error) {
	c, cleanup, err := Open(ctx, cfg, log)
	if err != nil {
		return counter.Chosen{}, nil, err
	}
	return counter.Chosen{Store: c, System: "memcached", Healthy: c.Connected, Deadlines: c.deadlines}, cleanup, nil
}

// newDialFunc returns a function that connects to a node. With TLS, the host name of the address
// must match the certificate.
func newDialFunc(timeout time.Duration, secure func() *tls.Config) dialFunc {
	plain := &net.Dialer{Timeout: timeout, KeepAlive: pingInterval}
	if secure == nil {
		return func(ctx context.Context, address string) (net.Conn, error) {
			return plain.DialContext(ctx, "tcp", address)
		}
	}
	return func(ctx context.Context, address string) (net.Conn, error) {
		d := &tls.Dialer{NetDialer: plain, Config: secure()} // the current files
		return d.DialContext(ctx, "tcp", address)
	}
}

// waitForNodes waits briefly until the nodes are reached, so that the first calls succeed when
// service and nodes start together.
func (c *Client) waitForNodes(ctx context.Context, looked <-chan struct{}) {
	bounded, cancel := context.WithTimeout(ctx, 2*c.deadlines.Timeout())
	defer cancel()
	select {
	case <-looked:
	case <-bounded.Done():
		return
	}
	for _, n := range *c.ring.nodes.Load() {
		n.waitUntilTried(bounded)
	}
}

// Ping implements counter.Store. It succeeds if at least one node answers (contract L-30).
func (c *Client) Ping(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, c.deadlines.Timeout())
	defer cancel()
	nodes := *c.ring.nodes.Load()
	results := make(chan error, len(nodes))
	for _, n := range nodes {
		go func() { results <- n.pingNode(bounded) }()
	}
	failures := make([]error, len(nodes))
	for i := range nodes {
		if failures[i] = <-results; failures[i] == nil {
			return nil
		}
	}
	if len(nodes) == 0 {
		return storeUnavailable(errNoNodes)
	}
	return storeUnavailable(errors.Join(failures...))
}

// Connected reports whether any node is connected. It sends nothing, because each connection is
// tested once a second anyway.
func (c *Client) Connected() bool {
	return slices.ContainsFunc(*c.ring.nodes.Load(), (*node).isConnected)
}

func validateHits(hits []counter.Hit, results []counter.Result) error {
	if len(hits) != len(results) {
		return fault.Newf(fault.Internal, "got %d hits but room for %d results", len(hits), len(results))
	}
	for i := range hits {
		if !validKey(hits[i].Key) {
			return fault.Newf(fault.Internal,
				"key %d of %d must have 1 to %d printable ASCII characters without spaces", i+1, len(hits),
				counter.MaxKey)
		}
	}
	return nil
}

func storeUnavailable(err error) error {
	return fault.Wrap(fault.Unavailable, "the counter store does not answer", err)
}

const (
	// maxNodes is the maximum number of nodes in a list or an SRV record.
	maxNodes = 256
	// MaxConnections is the maximum number of connections to one node.
	MaxConnections = 64
)

// Config contains the connection settings of the nodes (contract L-39).
type Config struct {
	HostPort   []string      `env:"MEMSTORE_HOST_PORT" desc:"the memcached nodes, each host:port, the same list on all instances; not together with MEMSTORE_SRV"`
	SRV        string        `env:"MEMSTORE_SRV" desc:"SRV record that lists the memcached nodes, for example _memcache._tcp.example.org; not together with MEMSTORE_HOST_PORT"`
	SRVRefresh time.Duration `env:"MEMSTORE_SRV_REFRESH" envDefault:"0" desc:"how often MEMSTORE_SRV is looked up again; 0 = once"`

	MaxIdleConns int `env:"MEMSTORE_MAX_IDLE_CONNS" envDefault:"2" desc:"number of connections that are kept to each memcached node, 1 to 64; all calls share them"`

	TLS                 bool   `env:"MEMSTORE_TLS" envDefault:"false" desc:"use TLS to memcached"`
	TLSClientCert       string `env:"MEMSTORE_TLS_CLIENT_CERT" desc:"file of the client certificate"`
	TLSClientKey        string `env:"MEMSTORE_TLS_CLIENT_KEY" desc:"file of the client certificate's key"`
	TLSCACert           string `env:"MEMSTORE_TLS_CACERT" desc:"file of CA certificates for checking memcached's certificate, in addition to the system's"`
	TLSSkipVerification bool   `env:"MEMSTORE_TLS_SKIP_HOSTNAME_VERIFICATION" envDefault:"false" desc:"do not check the host name in memcached's certificate"`

	// Timeout is the maximum time of a call: KVSTORE_TIMEOUT, which all counter stores share
	// (contract L-26).
	Timeout time.Duration

	// resolver looks up MEMSTORE_SRV; nil means the resolver of the system. Tests set their own.
	resolver *net.Resolver
}

// Configured reports whether the settings name any nodes.
func (c Config) Configured() bool { return len(c.HostPort) > 0 || c.SRV != "" }

// Validate returns an error that names the first malformed variable. An empty list of nodes is
// valid; a caller that selects memcached must also check Configured.
func (c Config) Validate() error {
	switch {
	case len(c.HostPort) > 0 && c.SRV != "":
		return errors.New("MEMSTORE_HOST_PORT and MEMSTORE_SRV are both set: give one")
	case len(c.HostPort) > maxNodes:
		return fmt.Errorf("MEMSTORE_HOST_PORT lists %d nodes; the maximum is %d", len(c.HostPort), maxNodes)
	case strings.ContainsAny(c.SRV, " \t,:/"):
		return fmt.Errorf(
			"MEMSTORE_SRV must be the name of one record, for example _memcache._tcp.example.org, not %q", c.SRV)
	case c.SRVRefresh < 0:
		return errors.New("MEMSTORE_SRV_REFRESH must not be negative")
	case c.MaxIdleConns < 1 || c.MaxIdleConns > MaxConnections:
		return fmt.Errorf("MEMSTORE_MAX_IDLE_CONNS must be 1 to %d, not %d", MaxConnections, c.MaxIdleConns)
	case c.TLS && (c.TLSClientCert == "") != (c.TLSClientKey == ""):
		return errors.New("MEMSTORE_TLS_CLIENT_CERT and MEMSTORE_TLS_CLIENT_KEY must be set together")
	}
	_, err := c.nodeNames()
	return err
}

// nodeNames returns the nodes of MEMSTORE_HOST_PORT by the names that determine which keys they
// have.
func (c Config) nodeNames() ([]string, error) {
	list := make([]string, len(c.HostPort))
	seen := make(map[string]bool, len(list))
	for i, given := range c.HostPort {
		host, port, err := net.SplitHostPort(strings.TrimSpace(given))
		n, wrong := strconv.ParseUint(port, 10, 16)
		if err != nil || host == "" || wrong != nil || n == 0 {
			return nil, fmt.Errorf("MEMSTORE_HOST_PORT must list addresses as host:port; number %d is not one", i+1)
		}
		list[i] = nodeName(host, uint16(n))
		if seen[list[i]] {
			return nil, fmt.Errorf("MEMSTORE_HOST_PORT lists %s twice", list[i])
		}
		seen[list[i]] = true
	}
	return list, nil
}

// nodeName returns the address of a node in the form that all instances must agree on.
func nodeName(host string, port uint16) string {
	return net.JoinHostPort(strings.ToLower(strings.TrimSuffix(host, ".")), strconv.Itoa(int(port)))
}

// tlsFiles returns the paths of the TLS files with the names of their settings.
func (c Config) tlsFiles() tlsfiles.ClientFiles {
	return tlsfiles.ClientFiles{
		Cert:    tlsfiles.ClientFile{Setting: "MEMSTORE_TLS_CLIENT_CERT", Path: c.TLSClientCert},
		Key:     tlsfiles.ClientFile{Setting: "MEMSTORE_TLS_CLIENT_KEY", Path: c.TLSClientKey},
		CA:      tlsfiles.ClientFile{Setting: "MEMSTORE_TLS_CACERT", Path: c.TLSCACert},
		AnyHost: c.TLSSkipVerification,
	}
}
