package valkey

import (
	"context"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/ports/counter"
)

// Counters is the counter store of the settings: a Client, or a Pair if KVSTORE_PERSECOND is true.
type Counters struct {
	counter.Store
	clients         []*Client
	needsConnection bool
}

// OpenCounters opens the store of c, and the second store of p if it is enabled. The servers do not
// have to be reachable yet. The function that it returns closes the stores.
func OpenCounters(ctx context.Context, c Config, p PerSecondConfig, log *logrus.Entry) (*Counters, func(), error) {
	store, cleanup, err := Open(ctx, c, log)
	if err != nil {
		return nil, nil, err
	}
	if !p.Enabled {
		return &Counters{store, []*Client{store}, c.HealthNeedsConnection}, cleanup, nil
	}
	second, cleanupSecond, err := Open(ctx, p.Config(c), log)
	if err != nil {
		cleanup()
		return nil, nil, err
	}
	pair := &Counters{NewPair(second, store, c.Timeout), []*Client{store, second}, c.HealthNeedsConnection}
	return pair, func() { cleanupSecond(); cleanup() }, nil
}

// Deadlines returns the deadlines of decisions that need several calls.
func (c *Counters) Deadlines() counter.Deadlines { return c.clients[0].store.deadlines }

// Healthy reports whether every store is connected. It always returns true if
// KVSTORE_HEALTH_CHECK_ACTIVE_CONNECTION is false.
func (c *Counters) Healthy() bool {
	if !c.needsConnection {
		return true
	}
	for _, client := range c.clients {
		if !client.Connected() {
			return false
		}
	}
	return true
}
