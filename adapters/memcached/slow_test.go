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
	"github.com/tollgate-dev/tollgate/test/must"
)

// newSlowClient returns a client of a server behind a proxy that delays nothing yet. The connection
// is made.
func newSlowClient(t *testing.T, timeout time.Duration) (*memcached.Client, *instance.Delayer) {
	t.Helper()
	d, err := instance.NewDelayer(sharedServer(t))
	must.Succeed(t, err)
	t.Cleanup(d.Close)
	cfg := newConfig(d.Address)
	cfg.Timeout = timeout
	c := openClient(t, cfg)
	await.Until(t, "a connection", c.Connected)
	return c, d
}

// TestMergedHitsPassOnSlowStore requires that calls for one key do not wait for each other's
// answers: the store gets the hits of all while it answers no call.
func TestMergedHitsPassOnSlowStore(t *testing.T) {
	t.Parallel()
	c, d := newSlowClient(t, await.Timeout)
	direct, h := openClient(t, newConfig(sharedServer(t))), newMinuteHit(newKeys()("hot"))
	look := h
	look.Addend = 0
	const callers = 50
	_, release := d.Hold(h.Key)
	defer release()
	results := make(chan error, callers)
	for range callers {
		go func() { results <- c.Count(t.Context(), []counter.Hit{h}, make([]counter.Result, 1), counter.Each) }()
	}
	await.Until(t, "the hits of all", func() bool {
		counts, err := addHits(t, direct, look)
		return err == nil && counts[0] == callers
	})
	release()
	for range callers {
		if err := await.Receive(t, "the end of a call", results); err != nil {
			t.Error(err)
		}
	}
}

// TestStepsShareOneDeadline requires that a call which needs two steps has one timeout for both.
// Together they take longer than it.
func TestStepsShareOneDeadline(t *testing.T) {
	t.Parallel()
	c, d := newSlowClient(t, 300*time.Millisecond)
	d.SetDelay(200 * time.Millisecond)
	key := newKeys()
	hits := []counter.Hit{newMinuteHit(key("a")), newMinuteHit(key("b"))}
	if err := c.Count(t.Context(), hits, make([]counter.Result, 2), counter.AllOrNone); !fault.Is(err,
		fault.Unavailable) {
		t.Errorf("%v, want fault.Unavailable", err)
	}
}

// TestWaitingHitsAreDecidedTogether requires of many hits of one key, which need much more time one
// after another than they have, that all are decided, and as many admitted as the limit says.
func TestWaitingHitsAreDecidedTogether(t *testing.T) {
	for _, algorithm := range []ratelimit.Algorithm{ratelimit.SlidingWindow, ratelimit.TokenBucket} {
		t.Run(algorithm.String(), func(t *testing.T) {
			t.Parallel()
			c, d := newSlowClient(t, 10*time.Second)
			d.SetDelay(50 * time.Millisecond)
			const callers, limit = 400, 150
			h := counter.Hit{
				Key: newKeys()("k"), Addend: 1, Limit: limit, Burst: limit, Window: 24 * time.Hour, TTL: 48 * time.Hour,
				Algorithm: algorithm,
			}
			var admitted atomic.Int64
			var all sync.WaitGroup
			for range callers {
				all.Go(func() {
					results := make([]counter.Result, 1)
					if err := c.Count(t.Context(), []counter.Hit{h}, results, counter.Each); err != nil {
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
