package valkey

import (
	"context"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/ports/counter"
)

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
