package inprocess_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/adapters/inprocess"
	"github.com/tollgate-dev/tollgate/adapters/memory"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/ports/throttle"
	"github.com/tollgate-dev/tollgate/ports/throttle/throttletest"
)

// countingStore counts the calls of a store.
type countingStore struct {
	counter.Store
	calls atomic.Int64
}

func (s *countingStore) Add(ctx context.Context, hits []counter.Hit, after []uint64) error {
	s.calls.Add(1)
	return s.Store.Add(ctx, hits, after)
}

// newShares returns a throttle that counts the registry in shares of a limit.
func newShares(t testing.TB, store counter.Store, limit uint64, c *clocktest.Manual) *inprocess.ShareThrottle {
	t.Helper()
	exact, err := inprocess.NewThrottle(inprocess.ThrottleConfig{Prefix: "p_", Limits: map[throttle.Scope]inprocess.Limit{
		throttle.RegistryAddress: {Requests: limit, Window: 15 * time.Minute},
		throttle.StepUpUser:      {Requests: 5, Window: time.Hour},
	}}, store, c)
	if err != nil {
		t.Fatal(err)
	}
	return inprocess.NewShareThrottle(exact, throttle.RegistryAddress)
}

func newNoon() *clocktest.Manual { return clocktest.NewManual(noon) }

func tryRegistry(t testing.TB, th throttle.Throttle, key string) throttle.Verdict {
	t.Helper()
	v, err := th.Try(t.Context(), throttle.RegistryAddress, key)
	if err != nil {
		t.Fatalf("Try: %v", err)
	}
	return v
}

// TestShareThrottleContract runs the suite with shares of one try, and with larger ones.
func TestShareThrottleContract(t *testing.T) {
	for _, limit := range []uint64{5, 3000} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			throttletest.Run(t, func(t *testing.T) throttletest.Subject {
				c := newNoon()
				return throttletest.Subject{
					Throttle: newShares(t, new(fakeStore), limit, c), Limited: throttle.RegistryAddress, Other: throttle.StepUpUser,
					Unlimited: throttle.APIAddress, Limit: limit, Window: 15 * time.Minute, Now: c.Now, Advance: c.Advance,
				}
			})
		})
	}
}

// TestSharesOfNoLimit checks that a scope without a limit does not need the store.
func TestSharesOfNoLimit(t *testing.T) {
	th := newShares(t, &fakeStore{err: errors.New("called")}, 0, newNoon())
	v := tryRegistry(t, th, "k")
	if v != (throttle.Verdict{Allowed: true, Unlimited: true}) {
		t.Errorf("%+v, want an unlimited verdict", v)
	}
	if err := th.GiveBack(t.Context(), throttle.RegistryAddress, "k", v); err != nil {
		t.Errorf("GiveBack: %v", err)
	}
}

func TestInstancesWithSharesAdmitTheLimitTogether(t *testing.T) {
	for _, limit := range []uint64{1, 7, 500, 20_000} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			c := newNoon()
			store := memory.NewCounters(c, memory.Config{MaxCounters: 10})
			all := throttletest.Instances{Scope: throttle.RegistryAddress, Limit: limit, AtLeast: limit * 9 / 10}
			for range 8 {
				all.Throttles = append(all.Throttles, newShares(t, store, limit, c))
			}
			throttletest.AdmitTogether(t, all)
		})
	}
}

// TestFirstRefusalIsLate checks the documented bound: whatever the distribution of the tries over
// the instances is, none refuses before they have admitted (1-n/1000)·16/17 of the limit together,
// and they never admit more than the limit.
func TestFirstRefusalIsLate(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		limit := rapid.Uint64Range(1, 10_000).Draw(rt, "limit")
		weights := rapid.SliceOfN(rapid.IntRange(0, 40), 1, 12).Draw(rt, "weights")
		c, store := newNoon(), new(fakeStore)
		var instances []*inprocess.ShareThrottle
		for range weights {
			instances = append(instances, newShares(t, store, limit, c))
		}
		weights[0]++ // so that there is a try in each turn
		admitted, refused := uint64(0), false
		for tries := uint64(0); tries < 2*limit; {
			for i, weight := range weights {
				for range weight {
					tries++
					if tryRegistry(t, instances[i], "k").Allowed {
						admitted++
					} else if !refused {
						refused = true
						if n := float64(len(weights)); float64(admitted) < float64(limit)*(1-n/1000)*16/17 {
							rt.Fatalf("%v instances refuse after %d of %d tries", n, admitted, limit)
						}
					}
				}
			}
		}
		if admitted > limit {
			rt.Fatalf("%d tries are admitted, want at most %d", admitted, limit)
		}
	})
}

// TestSharesNeedFewCalls checks how often the store is called, also after the limit is used up.
func TestSharesNeedFewCalls(t *testing.T) {
	for name, want := range map[string]struct {
		limit uint64
		tries int
		calls int64
	}{
		"far below the limit":          {limit: 1_000_000, tries: 10_000, calls: 10},
		"up to the default limit":      {limit: 10_000, tries: 10_000, calls: 300},
		"a few requests of an address": {limit: 10_000, tries: 10, calls: 1},
		"far over a small limit":       {limit: 10, tries: 10_000, calls: 11},
	} {
		store := &countingStore{Store: new(fakeStore)}
		th := newShares(t, store, want.limit, newNoon())
		for range want.tries {
			tryRegistry(t, th, "k")
		}
		if n := store.calls.Load(); n > want.calls {
			t.Errorf("%s: %d calls of the store for %d tries, want at most %d", name, n, want.tries, want.calls)
		}
	}
}

// TestOtherScopesAreCountedOneByOne checks that limits that protect against guessing are not
// counted in shares.
func TestOtherScopesAreCountedOneByOne(t *testing.T) {
	store := &countingStore{Store: new(fakeStore)}
	th := newShares(t, store, 1_000_000, newNoon())
	for n := range int64(5) {
		if _, err := th.Try(t.Context(), throttle.StepUpUser, "k"); err != nil || store.calls.Load() != n+1 {
			t.Fatalf("%d calls of the store after %d tries, %v", store.calls.Load(), n+1, err)
		}
	}
}

// TestRemainingIncludesOtherInstances checks that a verdict's Remaining falls with each try, and
// includes the tries of another instance after the next call to the store.
func TestRemainingIncludesOtherInstances(t *testing.T) {
	c, store := newNoon(), new(fakeStore)
	first, second := newShares(t, store, 10_000, c), newShares(t, store, 10_000, c)
	for n := uint64(1); n <= 10; n++ { // one share
		if v := tryRegistry(t, first, "k"); v.Remaining != 10_000-n {
			t.Errorf("try %d: %d remaining", n, v.Remaining)
		}
	}
	if v := tryRegistry(t, second, "k"); v.Remaining != 10_000-11 {
		t.Errorf("the first try of the other instance: %d remaining", v.Remaining)
	}
	if v := tryRegistry(t, first, "k"); v.Remaining != 10_000-21 { // the other instance has reserved 10
		t.Errorf("after the next call to the store: %d remaining", v.Remaining)
	}
}

// gatedStore is a fakeStore whose calls wait until the test lets them pass.
type gatedStore struct {
	fakeStore
	entered, pass chan struct{}
}

func newGatedStore() *gatedStore {
	return &gatedStore{entered: make(chan struct{}), pass: make(chan struct{})}
}

func (s *gatedStore) Add(ctx context.Context, hits []counter.Hit, after []uint64) error {
	s.entered <- struct{}{}
	select {
	case <-s.pass:
		return s.fakeStore.Add(ctx, hits, after)
	case <-ctx.Done():
		return fault.Wrap(fault.Unavailable, "canceled", ctx.Err())
	}
}

// TestOneReservationAtATime checks that tries of a key that arrive during a call to the store wait
// for it, and that the next call then reserves enough for all that still wait.
func TestOneReservationAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newGatedStore()
		th := newShares(t, store, 50, newNoon()) // shares of one try
		var all sync.WaitGroup
		for range 21 {
			all.Go(func() {
				if v := tryRegistry(t, th, "k"); !v.Allowed {
					t.Errorf("refused within the limit: %+v", v)
				}
			})
		}
		for range 2 {
			<-store.entered
			synctest.Wait() // all other tries wait; a second call would wait at the gate
			store.pass <- struct{}{}
		}
		all.Wait()
		if len(store.hits) != 2 || store.hits[0].Addend != 1 || store.hits[1].Addend != 20 {
			t.Errorf("%+v, want a hit of one try and one of twenty", store.hits)
		}
	})
}

// TestFailedReservation checks that a failed call fails the tries that wait for it and no others,
// and that the next call reserves one try only, because the failed one may have been counted.
func TestFailedReservation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newGatedStore()
		store.err = fault.New(fault.Unavailable, "unreachable")
		th := newShares(t, store, 10_000, newNoon())
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				v, err := th.Try(t.Context(), throttle.RegistryAddress, "k")
				if !errors.Is(err, store.err) || v.Allowed || v.Remaining != 10_000 || v.Limit != 10_000 || v.ResetAt.IsZero() {
					t.Errorf("%+v, %v, want the store's error and an unused limit", v, err)
				}
			})
		}
		<-store.entered
		synctest.Wait()
		store.pass <- struct{}{}
		all.Wait()
		store.err = nil
		for _, want := range []int64{1, 10} {
			all.Go(func() { tryRegistry(t, th, "k") })
			<-store.entered
			store.pass <- struct{}{}
			all.Wait()
			if got := store.hits[len(store.hits)-1].Addend; got != want {
				t.Errorf("a share of %d, want %d", got, want)
			}
		}
	})
}

// TestAbandonedReservation checks that a caller that leaves during its call to the store fails
// alone, and that a caller that leaves while it waits gets fault.Unavailable.
func TestAbandonedReservation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newGatedStore()
		th := newShares(t, store, 10_000, newNoon())
		leaving, leave := context.WithCancel(t.Context())
		var all sync.WaitGroup
		wantUnavailable := func() {
			if _, err := th.Try(leaving, throttle.RegistryAddress, "k"); !fault.Is(err, fault.Unavailable) {
				t.Errorf("%v, want fault.Unavailable", err)
			}
		}
		all.Go(wantUnavailable)
		<-store.entered
		all.Go(wantUnavailable)
		all.Go(func() {
			if v := tryRegistry(t, th, "k"); !v.Allowed {
				t.Errorf("a try that stays: %+v", v)
			}
		})
		synctest.Wait()
		leave()
		<-store.entered
		store.pass <- struct{}{}
		all.Wait()
	})
}

// TestSharesWithoutTheStore checks that an instance admits what it has reserved while the store is
// unavailable, then fails, and does not admit a key again whose limit was used up.
func TestSharesWithoutTheStore(t *testing.T) {
	store := new(fakeStore)
	th := newShares(t, store, 2_000, newNoon()) // the first share is 2
	tryRegistry(t, th, "a")
	for range 2_001 {
		tryRegistry(t, th, "b")
	}
	store.err = fault.New(fault.Unavailable, "unreachable")
	if v := tryRegistry(t, th, "a"); !v.Allowed {
		t.Errorf("a reserved try: %+v", v)
	}
	if _, err := th.Try(t.Context(), throttle.RegistryAddress, "a"); !fault.Is(err, fault.Unavailable) {
		t.Errorf("after the share: %v, want fault.Unavailable", err)
	}
	if v := tryRegistry(t, th, "b"); v.Allowed || v.Remaining != 0 {
		t.Errorf("a key over its limit: %+v", v)
	}
}

// TestSharesAreBounded checks that keys beyond the bound are counted one by one, and that the next
// window has room again.
func TestSharesAreBounded(t *testing.T) {
	const keys = 70_000 // more than the bound of 65,536
	c := newNoon()
	store := &countingStore{Store: memory.NewCounters(c, memory.Config{MaxCounters: 4 * keys})}
	th := newShares(t, store, 10_000, c)
	tryAll := func() int64 {
		before := store.calls.Load()
		for range 2 {
			for i := range keys {
				tryRegistry(t, th, fmt.Sprint(i))
			}
		}
		return store.calls.Load() - before
	}
	for range 2 {
		// A key with a share needs one call, any other two.
		if calls := tryAll(); calls < 2*keys-65_536 || calls > 2*keys-60_000 {
			t.Errorf("%d calls for two tries of each of %d keys, want shares of about 65,536 keys", calls, keys)
		}
		c.Advance(15 * time.Minute)
	}
	long := strings.Repeat("x", counter.MaxKey+1)
	before := store.calls.Load()
	for range 3 {
		tryRegistry(t, th, long)
	}
	if n := store.calls.Load() - before; n != 3 {
		t.Errorf("%d calls for three tries of a long key, want 3", n)
	}
}

// TestClockSetBack checks that tries in an earlier window count in it, and that the shares of the
// later one stay.
func TestClockSetBack(t *testing.T) {
	c, store := newNoon(), &countingStore{Store: new(fakeStore)}
	th := newShares(t, store, 10_000, c)
	tryRegistry(t, th, "k")
	c.Advance(-time.Minute)
	if v := tryRegistry(t, th, "k"); !v.Allowed || v.Remaining != 9_999 || !v.ResetAt.Equal(noon) {
		t.Errorf("in the earlier window: %+v", v)
	}
	c.Advance(time.Minute)
	if v := tryRegistry(t, th, "k"); v.Remaining != 9_998 || store.calls.Load() != 2 {
		t.Errorf("in the later window: %+v after %d calls", v, store.calls.Load())
	}
}

func BenchmarkTryInShares(b *testing.B) {
	throttletest.BenchmarkTry(b, newShares(b, new(fakeStore), 1<<40, newNoon()), throttle.RegistryAddress)
}
