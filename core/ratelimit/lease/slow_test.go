package lease_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/ratelimit/lease"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/test/must"
)

// timeout is that of a slow store.
const timeout = 800 * time.Millisecond

// deadlines bound decisions by timeout.
type deadlines struct{}

func (deadlines) Timeout() time.Duration { return timeout }

func (deadlines) Bound(ctx context.Context) context.Context {
	if at, ok := ctx.Deadline(); ok && time.Until(at) <= timeout {
		return ctx
	}
	bounded, cancel := context.WithTimeout(ctx, timeout)
	time.AfterFunc(timeout, cancel)
	return bounded
}

// newSlowFixture returns an instance whose store takes a time for each call once it is slow.
func newSlowFixture(limit uint64, took time.Duration) (i *instance, s *store, slow func()) {
	c := clocktest.NewManual(start)
	s = newStore(c)
	return &instance{lease.New(s, c, deadlines{}), c, limit}, s, func() {
		s.enter = func(context.Context, []counter.Hit) { time.Sleep(took) }
	}
}

// TestSlowStore requires that no hit of hot keys fails or waits longer than the timeout while a
// store answers each call within seven eighths of it.
func TestSlowStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, _, slow := newSlowFixture(50, timeout*7/8-time.Millisecond)
		keys := []string{"a", "b", "c"}
		for _, key := range keys {
			i.heat(t, key)
		}
		i.clock.Advance(time.Minute)
		slow()
		var all sync.WaitGroup
		for n := range 200 {
			all.Go(func() {
				began, b := time.Now(), i.batch(keys[n%3], 1)
				for _, key := range keys[:n%4] {
					other := i.batch(key, 1)
					b.Hits, b.IDs, b.Results = append(b.Hits, other.Hits...), append(b.IDs, other.IDs...),
						append(b.Results, counter.Result{})
				}
				if err := i.Add(t.Context(), b); err != nil || time.Since(began) > timeout {
					t.Errorf("%d hits: %v after %v", len(b.Hits), err, time.Since(began))
				}
			})
			time.Sleep(7 * time.Millisecond)
		}
		all.Wait()
		time.Sleep(timeout) // the timers end, and the calls of those who did not wait for them
		synctest.Wait()
	})
}

// TestHungStoreEndsCallsInTime requires that a caller waits no longer than the timeout or its own
// deadline, and that what its call takes from the store is not lost.
func TestHungStoreEndsCallsInTime(t *testing.T) {
	for own, want := range map[time.Duration]time.Duration{
		time.Hour: timeout, 20 * time.Millisecond: 20 * time.Millisecond,
	} {
		synctest.Test(t, func(t *testing.T) {
			i, s, slow := newSlowFixture(5_000, 10*timeout)
			n := i.heat(t, "k")
			slow()
			var all sync.WaitGroup
			for range 3 {
				all.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), own)
					defer cancel()
					began := time.Now()
					if err := i.Add(ctx, i.batch("k", 400)); !fault.Is(err, fault.Unavailable) ||
						time.Since(began) != want {
						t.Errorf("%v after %v, want %v", err, time.Since(began), want)
					}
				})
				synctest.Wait()
			}
			all.Wait()
			time.Sleep(20 * timeout) // the calls end
			synctest.Wait()
			s.enter = nil
			if held := i.batch("k", 1); i.Add(t.Context(), held) != nil || held.Results[0].Count < n+401 {
				t.Errorf("%d hits are counted, want at least %d", held.Results[0].Count, n+401)
			}
		})
	}
}

// BenchmarkManyHits counts requests with many hits, of keys with leases that are not hot.
func BenchmarkManyHits(b *testing.B) {
	for _, size := range []int{100, 1_000, 20_000, 40_000, 60_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			i, _ := newFixture(1_000_000)
			var all lease.Batch
			for n := range size {
				one := i.batch(fmt.Sprint(n), 1)
				all.Hits, all.IDs, all.Results, all.Now = append(all.Hits, one.Hits...), append(all.IDs, one.IDs...),
					append(all.Results, counter.Result{}), one.Now
			}
			b.ReportAllocs()
			for b.Loop() {
				must.Succeed(b, i.Add(b.Context(), all))
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(size), "ns/hit")
		})
	}
}
