package inprocess_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/inprocess"
	"github.com/tollgate-dev/tollgate/adapters/memory"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/ratelimit/lease"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/ports/throttle"
	"github.com/tollgate-dev/tollgate/ports/throttle/throttletest"
	"github.com/tollgate-dev/tollgate/test/must"
)

// countingStore counts the calls of a store.
type countingStore struct {
	counter.Store
	calls atomic.Int64
}

func (s *countingStore) Count(ctx context.Context, hits []counter.Hit, results []counter.Result, m counter.Mode) error {
	s.calls.Add(1)
	return s.Store.Count(ctx, hits, results, m)
}

// newLeased returns a throttle that counts the registry with leases.
func newLeased(t testing.TB, store counter.Store, limit uint64, c *clocktest.Manual) *inprocess.Throttle {
	t.Helper()
	exact, err := inprocess.NewThrottle(inprocess.ThrottleConfig{Prefix: "p_",
		Limits: map[throttle.Scope]inprocess.Limit{
			throttle.RegistryAddress: {Requests: limit, Window: 15 * time.Minute},
			throttle.StepUpUser:      {Requests: 5, Window: time.Hour},
		}}, store, c)
	must.Succeed(t, err)
	return inprocess.NewLeasedThrottle(exact, lease.New(store, c, nil), throttle.RegistryAddress)
}

func newNoon() *clocktest.Manual {
	return clocktest.NewManual(time.Date(2030, time.May, 6, 12, 0, 0, 0, time.UTC))
}

func tryRegistry(t testing.TB, th throttle.Throttle, key string) throttle.Verdict {
	t.Helper()
	v, err := th.Try(t.Context(), throttle.RegistryAddress, key)
	if err != nil {
		t.Fatalf("Try: %v", err)
	}
	return v
}

// TestLeasedThrottleContract runs the suite with keys that are not hot, and with one that becomes
// hot.
func TestLeasedThrottleContract(t *testing.T) {
	for _, limit := range []uint64{5, 3000} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			throttletest.Run(t, func(t *testing.T) throttletest.Subject {
				c := newNoon()
				return throttletest.Subject{
					Throttle: newLeased(t, new(fakeStore), limit, c), Limited: throttle.RegistryAddress,
					Other:     throttle.StepUpUser,
					Unlimited: throttle.APIAddress, Limit: limit, Window: 15 * time.Minute, Now: c.Now,
					Advance: c.Advance,
				}
			})
		})
	}
}

func TestInstancesWithLeasesAdmitTheLimitTogether(t *testing.T) {
	for _, limit := range []uint64{1, 7, 500, 20_000} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			c := newNoon()
			store := memory.NewCounters(c, memory.Config{MaxCounters: 10})
			all := throttletest.Instances{Scope: throttle.RegistryAddress, Limit: limit, AtLeast: limit * 9 / 10}
			for range 8 {
				all.Throttles = append(all.Throttles, newLeased(t, store, limit, c))
			}
			throttletest.AdmitTogether(t, all)
		})
	}
}

// TestHotAddressNeedsFewCalls checks how often the store is called for an address, also after its
// limit is used up, and for the scopes that are not counted with leases.
func TestHotAddressNeedsFewCalls(t *testing.T) {
	for name, c := range map[string]struct {
		scope throttle.Scope
		limit uint64
		calls int64
	}{
		"far below the limit": {throttle.RegistryAddress, 1_000_000, 200},
		"over the limit":      {throttle.RegistryAddress, 5_000, 400},
		"a step-up":           {throttle.StepUpUser, 1_000_000, 10_000},
	} {
		store, clock := &countingStore{Store: new(fakeStore)}, newNoon()
		th := newLeased(t, store, c.limit, clock)
		for n := range uint64(10_000) {
			v, err := th.Try(t.Context(), c.scope, "k")
			if limit := v.Limit; err != nil || v.Allowed != (n < limit) || v.Remaining != limit-min(n+1, limit) {
				t.Fatalf("%s: try %d: %+v, %v", name, n, v, err)
			}
			clock.Advance(time.Millisecond)
		}
		if n := store.calls.Load(); n > c.calls || c.scope == throttle.StepUpUser && n != c.calls {
			t.Errorf("%s: %d calls of the store for 10000 tries, want at most %d", name, n, c.calls)
		}
	}
}

// TestLeasedTriesAreGivenBack checks that GiveBack makes room for another try, also of a hot key.
func TestLeasedTriesAreGivenBack(t *testing.T) {
	th := newLeased(t, new(fakeStore), 1_000, newNoon())
	var v throttle.Verdict
	for range 1_000 {
		v = tryRegistry(t, th, "k")
	}
	must.Succeed(t, th.GiveBack(t.Context(), throttle.RegistryAddress, "k", v))
	if v := tryRegistry(t, th, "k"); !v.Allowed || v.Remaining != 0 {
		t.Errorf("after a try is given back: %+v", v)
	}
	if v := tryRegistry(t, th, "k"); v.Allowed {
		t.Errorf("after the limit is used up again: %+v", v)
	}
}

// TestLeasesWithoutTheStore checks that an instance admits what it holds while the store is
// unavailable, and then fails.
func TestLeasesWithoutTheStore(t *testing.T) {
	store := new(fakeStore)
	th := newLeased(t, store, 10_000, newNoon())
	for range 60 {
		tryRegistry(t, th, "a")
	}
	store.err = fault.New(fault.Unavailable, "unreachable")
	if v := tryRegistry(t, th, "a"); !v.Allowed {
		t.Errorf("a try of the share: %+v", v)
	}
	var err error
	for range 500 {
		if _, err = th.Try(t.Context(), throttle.RegistryAddress, "a"); err != nil {
			break
		}
	}
	if !fault.Is(err, fault.Unavailable) {
		t.Errorf("after the share: %v, want fault.Unavailable", err)
	}
}

func BenchmarkLeasedTry(b *testing.B) {
	throttletest.BenchmarkTry(b, newLeased(b, new(fakeStore), 1<<40, newNoon()), throttle.RegistryAddress)
}
