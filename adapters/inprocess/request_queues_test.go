package inprocess_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/inprocess"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/ports/throttle"
)

// slowStore is a fakeStore that needs time for each call.
type slowStore struct {
	fakeStore
	calls int
}

func (d *slowStore) Add(ctx context.Context, hits []counter.Hit, after []uint64) error {
	time.Sleep(time.Millisecond)
	d.mu.Lock()
	d.calls++
	d.mu.Unlock()
	return d.fakeStore.Add(ctx, hits, after)
}

func newSlowThrottle(t *testing.T, d *slowStore) *inprocess.Throttle {
	t.Helper()
	th, err := inprocess.NewThrottle(inprocess.ThrottleConfig{
		Limits: map[throttle.Scope]inprocess.Limit{throttle.APIAddress: {Requests: 60, Window: time.Hour}},
	}, d, clocktest.NewManual(time.Unix(1_000_000, 0)))
	if err != nil {
		t.Fatal(err)
	}
	return th
}

// TestQueuedTries checks that concurrent tries of one key cause two calls of the store, that each
// try gets its own count, and that tries of another key are counted separately.
func TestQueuedTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const tries = 100
		d := &slowStore{}
		th := newSlowThrottle(t, d)
		var mu sync.Mutex
		var remaining []int
		allowed := 0
		var all sync.WaitGroup
		for range tries {
			all.Go(func() {
				v, err := th.Try(t.Context(), throttle.APIAddress, "a")
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				if v.Allowed {
					allowed++
					remaining = append(remaining, int(v.Remaining))
				}
			})
		}
		all.Wait()
		slices.Sort(remaining)
		if distinct := slices.Compact(remaining); allowed != 60 || len(distinct) != 60 || distinct[0] != 0 || distinct[59] != 59 {
			t.Errorf("%d of %d tries are allowed with the remaining counts %v, want 60 allowed with 0 to 59", allowed, tries, remaining)
		}
		if d.calls != 2 {
			t.Errorf("%d calls of the store, want 2: the first try and all others", d.calls)
		}
		v, err := th.Try(t.Context(), throttle.APIAddress, "b")
		if err != nil || v.Remaining != 59 {
			t.Errorf("a try of another key: %+v, %v, want 59 remaining", v, err)
		}
	})
}

// TestFailedQueuedTries checks that all tries of a failed call get the error, that no try waits
// after its context has ended, and that the next try calls the store again.
func TestFailedQueuedTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &slowStore{}
		d.err = errors.New("unreachable")
		th := newSlowThrottle(t, d)
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				if _, err := th.Try(t.Context(), throttle.APIAddress, "a"); !errors.Is(err, d.err) {
					t.Errorf("Try: %v, want %v", err, d.err)
				}
			})
		}
		all.Go(func() {
			synctest.Wait() // the other tries are in the queue
			ctx, cancel := context.WithTimeout(t.Context(), time.Microsecond)
			defer cancel()
			if _, err := th.Try(ctx, throttle.APIAddress, "a"); !fault.Is(err, fault.Unavailable) {
				t.Errorf("Try after the deadline: %v, want fault.Unavailable", err)
			}
		})
		all.Wait()
		synctest.Wait()
		d.mu.Lock()
		d.err = nil
		d.mu.Unlock()
		if v, err := th.Try(t.Context(), throttle.APIAddress, "a"); err != nil || !v.Allowed {
			t.Errorf("after the store is available again: %+v, %v, want an allowed try", v, err)
		}
	})
}
