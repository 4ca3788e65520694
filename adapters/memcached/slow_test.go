package memcached_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/memcached"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/instance"
)

// newSlowClient returns a client of a server behind a proxy that is slow once delay is called.
func newSlowClient(t *testing.T, timeout time.Duration) (c *memcached.Client, delay func(time.Duration)) {
	t.Helper()
	d, err := instance.NewDelayer(sharedServer(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	cfg := newConfig(d.Address)
	cfg.Timeout = timeout
	c = openClient(t, cfg)
	await.Until(t, "a connection", c.Connected)
	return c, d.SetDelay
}

// TestMergedHitsPassOnSlowStore requires that calls for one key do not fail because they wait for each
// other.
func TestMergedHitsPassOnSlowStore(t *testing.T) {
	t.Parallel()
	c, delay := newSlowClient(t, 2*time.Second)
	delay(1200 * time.Millisecond)
	h := newMinuteHit(newKeys()("hot"))
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if err := c.Add(t.Context(), []counter.Hit{h}, make([]uint64, 1)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// TestStepsShareOneDeadline requires that a call which needs two steps ends in time.
func TestStepsShareOneDeadline(t *testing.T) {
	t.Parallel()
	c, delay := newSlowClient(t, 2*time.Second)
	delay(1200 * time.Millisecond)
	key := newKeys()
	hits := []counter.Hit{newMinuteHit(key("a")), newMinuteHit(key("b"))}
	began := time.Now()
	err := c.AddUnlessOver(t.Context(), hits, make([]uint64, 2))
	if took := time.Since(began); !fault.Is(err, fault.Unavailable) || took > 4*time.Second {
		t.Errorf("%v after %v", err, took)
	}
}

// TestWaitingHitsAreDecidedTogether requires of many hits of one key, which need much more time one after
// another than they have, that all are decided, and as many admitted as the limit says.
func TestWaitingHitsAreDecidedTogether(t *testing.T) {
	for _, algorithm := range []ratelimit.Algorithm{ratelimit.SlidingWindow, ratelimit.TokenBucket} {
		t.Run(algorithm.String(), func(t *testing.T) {
			t.Parallel()
			c, delay := newSlowClient(t, 4*time.Second)
			delay(50 * time.Millisecond)
			const callers, limit = 400, 150
			h := counter.Hit{Key: newKeys()("k"), Addend: 1, Limit: limit, Burst: limit, Window: 24 * time.Hour, TTL: 48 * time.Hour, Algorithm: algorithm}
			var admitted atomic.Int64
			var all sync.WaitGroup
			for range callers {
				all.Go(func() {
					results := make([]counter.Admitted, 1)
					if err := c.Admit(t.Context(), []counter.Hit{h}, results); err != nil {
						t.Error(err)
					}
					if results[0].Verdict.Admitted {
						admitted.Add(1)
					}
				})
			}
			all.Wait()
			if admitted.Load() != limit {
				t.Errorf("%d hits are admitted, want %d", admitted.Load(), limit)
			}
		})
	}
}
