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

// distant is a tally that takes a while to answer.
type distant struct {
	tally
	calls int
}

func (d *distant) Add(ctx context.Context, hits []counter.Hit, after []uint64) error {
	time.Sleep(time.Millisecond)
	d.mu.Lock()
	d.calls++
	d.mu.Unlock()
	return d.tally.Add(ctx, hits, after)
}

func openDistant(t *testing.T, d *distant) *inprocess.Throttle {
	t.Helper()
	th, err := inprocess.NewThrottle(inprocess.ThrottleConfig{
		Limits: map[throttle.Scope]inprocess.Limit{throttle.APIAddress: {Requests: 60, Window: time.Hour}},
	}, d, clocktest.NewManual(time.Unix(1_000_000, 0)))
	if err != nil {
		t.Fatal(err)
	}
	return th
}

// TestTriesTogether wants tries of one key that come at once to be two calls, and
// each to get a count of its own; those of another key are no part of it.
func TestTriesTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const tries = 100
		d := &distant{}
		th := openDistant(t, d)
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
			t.Errorf("%d of %d tries are allowed, remaining %v", allowed, tries, remaining)
		}
		if d.calls != 2 {
			t.Errorf("%d calls of the store, want the first and the rest", d.calls)
		}
		v, err := th.Try(t.Context(), throttle.APIAddress, "b")
		if err != nil || v.Remaining != 59 {
			t.Errorf("another key: %+v, %v", v, err)
		}
	})
}

// TestTriesTogetherFail checks that all tries of a failed call get the error, that no try waits
// after its context has ended, and that the next try calls the store again.
func TestTriesTogetherFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &distant{}
		d.err = errors.New("away")
		th := openDistant(t, d)
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				if _, err := th.Try(t.Context(), throttle.APIAddress, "a"); !errors.Is(err, d.err) {
					t.Errorf("error %v", err)
				}
			})
		}
		all.Go(func() {
			synctest.Wait() // the others are on their way
			ctx, cancel := context.WithTimeout(t.Context(), time.Microsecond)
			defer cancel()
			if _, err := th.Try(ctx, throttle.APIAddress, "a"); !fault.Is(err, fault.Unavailable) {
				t.Errorf("error %v of who waits no longer", err)
			}
		})
		all.Wait()
		synctest.Wait()
		d.mu.Lock()
		d.err = nil
		d.mu.Unlock()
		if v, err := th.Try(t.Context(), throttle.APIAddress, "a"); err != nil || !v.Allowed {
			t.Errorf("once the store is back: %+v, %v", v, err)
		}
	})
}
