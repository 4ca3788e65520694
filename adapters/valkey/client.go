// Package valkey stores counters and copies of sessions in Valkey 7.2 or later, or Redis 6.2 or
// later: a single server, a server watched by sentinels, or a cluster (contract L-40). While the
// store does not answer, calls return fault.Unavailable without delay; the caller decides what to
// do then.
//
// # One command per counter
//
// A counter that this process already knows costs one INCRBY. For an unknown counter, the same
// pipeline first sends SET with NX and the expiry. So a counter and its expiry are always created
// together, and a crash cannot leave a counter that never expires. If a known counter has
// disappeared (evicted, flushed, lost in a failover), INCRBY returns the addend alone, and the
// client sets the expiry again.
//
// While a command or script for a key is in progress, further calls with one hit of this key wait
// for a moment (less than a thirty-second of the timeout) or until it has ended, and the next one
// counts their hits together. Each call gets its own result. A call that gives up while it waits is
// counted.
//
// # Failures of the store
//
// Every call ends within KVSTORE_TIMEOUT and a sixteenth of it, however many steps it has. After
// five consecutive commands without an answer, calls fail at once until a background probe gets an
// answer. If the connection breaks during a call, the call is repeated within its deadline. If the
// first attempt had been executed after all, its hits count twice, which never lets more requests
// through than the limit. A call that subtracts hits is not repeated, because subtracting twice
// would. If the server has become a read-only replica, the client connects again to find the new
// primary.
//
// # Clusters
//
// The hits of one Add are sent to their nodes in parallel. Each node fails on its own: while a node
// does not answer, calls that need it fail, and all others succeed. A script cannot span several
// slots, and keys are not changed to force them into one slot. So a call in the mode AllOrNone over
// several slots first reads all counters. If all would be within their limits, it then counts slot
// by slot, each slot atomically. Between the two steps a parallel request may fill a counter. This
// counter is then over its limit, but the hits in the other slots were counted too. So a limit
// never lets more requests through, but one hit too many may be counted, contrary to contract L-10
// (see contract L-42). A call within one slot is exact, and so is every call with one hit.
//
// # Many hits
//
// A server does nothing else while it executes a script. So a script decides about at most 100
// hits, or 500 in the mode AllOrNone; more than these are counted in two steps too, as over several
// slots, outside clusters as well. At most 1000 commands of fixed windows are sent at once.
package valkey

import (
	"context"
	"fmt"

	"github.com/sirupsen/logrus"
	"github.com/valkey-io/valkey-go"

	"github.com/tollgate-dev/tollgate/adapters/internal/deadline"
	"github.com/tollgate-dev/tollgate/adapters/internal/merge"
	"github.com/tollgate-dev/tollgate/ports/counter"
)

// Client is a counter.Store in Valkey. It is safe for concurrent use.
type Client struct {
	store         *managedClient
	known         *knownKeys
	pipelineLimit int // commands in one pipeline; 0 = no limit
	merged        *merge.Adder[counter.Hit, counter.Result]
}

// Open returns a client and a function that closes it. An unreachable store is not an error: calls
// return fault.Unavailable until it is reachable. If cfg is malformed, the error names the
// environment variable.
func Open(ctx context.Context, cfg Config, log *logrus.Entry) (*Client, func(), error) {
	return openWith(ctx, cfg, log, nil)
}

// openWith is Open with a function that connects; nil for the one of the settings.
func openWith(ctx context.Context, cfg Config, log *logrus.Entry, connect dialFunc) (*Client, func(), error) {
	if err := cfg.Validate(); err != nil {
		return nil, nil, err
	}
	options, err := cfg.clientOptions(log)
	if err != nil {
		return nil, nil, err
	}
	if connect != nil {
		options.DialCtxFn = guarded(connect)
	}
	m := &managedClient{
		deadlines: deadline.NewSource(cfg.Timeout), dialTimeout: cfg.Timeout,
		probeWhenIdle: cfg.HealthNeedsConnection, log: log,
	}
	m.newClient = func() (valkey.Client, error) { return connectWithFallback(options) }
	end := openManagedClient(ctx, m)
	c := &Client{store: m, known: newKnownKeys(), pipelineLimit: cfg.PipelineLimit}
	c.merged = merge.New(cfg.Timeout, c.countTogether)
	return c, end, nil
}

// connectWithFallback returns a connected client. Some proxies refuse the HELLO command, or close
// the connection because of it. The client then connects without HELLO. The next client tries HELLO
// again.
func connectWithFallback(options valkey.ClientOption) (valkey.Client, error) {
	client, err := newValkeyClient(options)
	if _, refused := serverError(err); !refused && !isConnectionLost(err) {
		return client, err
	}
	if plain, plainErr := newValkeyClient(withoutHello(options)); plainErr == nil {
		return plain, nil
	}
	return client, err
}

// newValkeyClient returns a connected client. When valkey-go returns both a client and an error, it
// closes that client.
func newValkeyClient(options valkey.ClientOption) (valkey.Client, error) {
	client, err := valkey.NewClient(options)
	if err != nil {
		if client != nil {
			client.Close()
		}
		return nil, fmt.Errorf("connect: %w", err)
	}
	return client, nil
}

// Ping implements counter.Store. It sends a PING even while a breaker is open. For a cluster, it
// succeeds if at least one node answers.
func (c *Client) Ping(ctx context.Context) error { return c.store.pingStore(ctx) }

// Connected reports whether the store, or at least one node of a cluster, answered the last calls.
// It sends nothing. If KVSTORE_HEALTH_CHECK_ACTIVE_CONNECTION is on, a background probe keeps the
// result up to date while there are no calls.
func (c *Client) Connected() bool {
	_, all := c.store.openBreakers()
	return c.store.current.Load() != nil && !all
}

// OpenCounters opens the store of c, and the second store of p if it is enabled. The servers do not
// have to be reachable yet. The store is healthy if every server is connected, or always if
// KVSTORE_HEALTH_CHECK_ACTIVE_CONNECTION is false. The function that it returns closes the stores.
func OpenCounters(
	ctx context.Context, c Config, p PerSecondConfig, log *logrus.Entry,
) (counter.Chosen, func(), error) {
	store, cleanup, err := Open(ctx, c, log)
	if err != nil {
		return counter.Chosen{}, nil, err
	}
	chosen := counter.Chosen{
		Store: store, System: "valkey", Deadlines: store.store.deadlines,
		Healthy: func() bool { return !c.HealthNeedsConnection || store.Connected() },
	}
	if !p.Enabled {
		return chosen, cleanup, nil
	}
	second, cleanupSecond, err := Open(ctx, p.Config(c), log)
	if err != nil {
		cleanup()
		return counter.Chosen{}, nil, err
	}
	chosen.Store = NewPair(second, store, c.Timeout)
	chosen.Healthy = func() bool { return !c.HealthNeedsConnection || store.Connected() && second.Connected() }
	return chosen, func() { cleanupSecond(); cleanup() }, nil
}
