// Package valkey keeps counters and session copies in Valkey 7.2 and later, or Redis 6.2 and later:
// a single server, one watched by sentinels, or a cluster (contract L-40). It does not decide what
// to do while the store is away; it returns fault.Unavailable without delay.
//
// # One command per counter
//
// A counter that this process has seen costs one INCRBY. For one it has not, a SET with NX and the expiry travels before
// the INCRBY in the same pipeline, so a counter is always made together with its expiry, and no crash in between leaves
// one that lives for ever. Should a counter vanish that was seen (evicted, flushed, lost in a failover), the answer equals
// the addend, and the expiry is set again.
//
// # A store that fails
//
// Every call ends within KVSTORE_TIMEOUT. After five calls in a row without an answer, calls fail at once until a
// goroutine of the client's own finds that the store answers again. A call under which the connection breaks is made
// again within its deadline; when the one before was carried out after all, its hits count twice, which never admits more
// than the limit. A call that gives hits back is not made again, since giving back twice would. A server that has become a replica is left for whichever is reached anew.
//
// # Clusters
//
// The hits of one Add go to their nodes at once. Each node fails apart from the others: while one
// does not answer, calls that need it fail, and those that do not go on. A script cannot span
// slots, and keys are not changed to force them into one: AddUnlessOver over several slots reads
// all counters first, and if none would be over counts slot by slot, each slot atomically. Between
// the two a parallel request may fill a counter; this one is then over, yet counted in the other
// slots too. So a limit never lets more through, but under contract L-10 a hit too many may be
// counted (contract L-42). A call within one slot, which one hit always is, is exact.
package valkey

import (
	"context"
	"fmt"

	"github.com/sirupsen/logrus"
	"github.com/valkey-io/valkey-go"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/counter"
)

// Client counts in the store. It is safe for concurrent use.
type Client struct {
	link   *link
	seen   *seen
	chunk  int // how many commands go at a time; 0 = all
	script *valkey.Lua
}

// Open returns a client and what closes it. A store that is away is no error: calls report fault.Unavailable until it is
// there. What is malformed in cfg is an error that names the variable.
func Open(ctx context.Context, cfg Config, log *logrus.Entry) (*Client, func(), error) {
	if err := cfg.Validate(); err != nil {
		return nil, nil, err
	}
	options, err := cfg.options(log)
	if err != nil {
		return nil, nil, err
	}
	l := &link{timeout: cfg.Timeout, dial: cfg.Timeout, watched: cfg.HealthNeedsConnection, log: log}
	l.connect = func() (valkey.Client, error) { return connect(options) }
	end := openLink(ctx, l)
	return &Client{link: l, seen: newSeen(), chunk: cfg.PipelineLimit, script: valkey.NewLuaScript(addUnlessOverSource)}, end, nil
}

// connect returns a client that is connected. Where the server refuses HELLO, or ends connections because of it, as proxies do, the
// client does without, for as long as it lives: the next client tries HELLO first again.
func connect(options valkey.ClientOption) (valkey.Client, error) {
	client, err := connectBy(options)
	if _, refused := replied(err); !refused && !lost(err) {
		return client, err
	}
	if plain, plainErr := connectBy(withoutHello(options)); plainErr == nil {
		return plain, nil
	}
	return client, err
}

// connectBy makes a client, and closes one that valkey-go returns next to an error.
func connectBy(options valkey.ClientOption) (valkey.Client, error) {
	client, err := valkey.NewClient(options)
	if err != nil {
		if client != nil {
			client.Close()
		}
		return nil, fmt.Errorf("connect: %w", err)
	}
	return client, nil
}

// Ping implements ports/counter. It asks the store itself, also while a breaker is open. A cluster answers while any of
// its nodes does.
func (c *Client) Ping(ctx context.Context) error { return c.link.ping(ctx) }

// Connected tells, without asking the store, whether it was there last, of a cluster at least one node. That is known
// from calls, and, where KVSTORE_HEALTH_CHECK_ACTIVE_CONNECTION is on, also while there are none.
func (c *Client) Connected() bool {
	_, all := c.link.away()
	return c.link.client.Load() != nil && !all
}

func checkLength(hits []counter.Hit, after []uint64) error {
	if len(hits) != len(after) {
		return fault.Newf(fault.Internal, "", "%d hits with room for %d counts", len(hits), len(after))
	}
	return nil
}
