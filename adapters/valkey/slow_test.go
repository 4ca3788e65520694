package valkey_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/valkey"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/test/instance"
)

const (
	slowTimeout = 2 * time.Second
	slowDelay   = 1200 * time.Millisecond // two calls in turn take longer than the timeout
	// slowBound is much more than the timeout and a fifth of it, and less than the four calls in turn of
	// two stores that are read before they count.
	slowBound = 2 * slowTimeout
)

// slowStore is a server behind a proxy that is slow once delay is called.
func newSlowStore(t *testing.T) (c *valkey.Client, delay func()) {
	t.Helper()
	d, err := instance.NewDelayer(sharedServer(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	cfg := newConfig(d.Address)
	cfg.Timeout, cfg.PoolSize = slowTimeout, 1 // the connection is made before the store is slow
	c = open(t, cfg)
	if err := c.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c, func() { d.SetDelay(slowDelay) }
}

// within runs a call that must end before slowBound, and returns its error.
func within(t *testing.T, what string, call func(context.Context) error) error {
	t.Helper()
	began := time.Now()
	err := call(t.Context())
	if took := time.Since(began); took > slowBound {
		t.Errorf("%s: %v after %v, want at most %v", what, err, took, slowBound)
	}
	return err
}

// TestMergedHitsPassOnSlowStore requires that calls for one key do not fail because they wait for each
// other, and that each has its own count.
func TestMergedHitsPassOnSlowStore(t *testing.T) {
	t.Parallel()
	c, delay := newSlowStore(t)
	h := newMinuteHit(newKeys()("hot"))
	if _, err := add(t, c, h); err != nil {
		t.Fatal(err)
	}
	delay()
	const callers = 50
	counts := make([]uint64, callers)
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			if err := c.Add(t.Context(), []counter.Hit{h}, counts[i:i+1]); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	seen := map[uint64]bool{}
	for _, n := range counts {
		seen[n] = true
	}
	if len(seen) != callers {
		t.Errorf("%d different counts of %d hits", len(seen), callers)
	}
}

// TestBothStoresAreAskedAtTheSameTime requires that hits of both stores are counted within the timeout, for
// which one store after the other would take too long.
func TestBothStoresAreAskedAtTheSameTime(t *testing.T) {
	t.Parallel()
	pair, hits := newSlowPair(t)
	for name, call := range map[string]func(context.Context) error{
		"Add":      func(ctx context.Context) error { return pair.Add(ctx, hits[:2], make([]uint64, 2)) },
		"Admit":    func(ctx context.Context) error { return pair.Admit(ctx, hits, make([]counter.Admitted, 3)) },
		"AdmitAll": func(ctx context.Context) error { return pair.AdmitAll(ctx, hits, make([]counter.Admitted, 3)) },
	} {
		if err := call(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestStepsShareOneDeadline requires that calls which need several steps end in time: with two stores, and
// with more hits than one script counts.
func TestStepsShareOneDeadline(t *testing.T) {
	t.Parallel()
	pair, hits := newSlowPair(t)
	one, delay := newSlowStore(t)
	key := newKeys()
	many := make([]counter.Hit, 600)
	for i := range many {
		many[i] = newMinuteHit(key(fmt.Sprint(i)))
	}
	delay()
	for name, call := range map[string]func(context.Context) error{
		"two stores": func(ctx context.Context) error { return pair.AddUnlessOver(ctx, hits[:2], make([]uint64, 2)) },
		"many hits":  func(ctx context.Context) error { return one.AddUnlessOver(ctx, many, make([]uint64, len(many))) },
		"many of all algorithms": func(ctx context.Context) error {
			return one.AdmitAll(ctx, many, make([]counter.Admitted, len(many)))
		},
	} {
		if err := within(t, name, call); !fault.Is(err, fault.Unavailable) {
			t.Errorf("%s: %v, want fault.Unavailable", name, err)
		}
	}
}

// newSlowPair returns a pair of slow stores, and hits of both: fixed windows, then one of another
// algorithm.
func newSlowPair(t *testing.T) (*valkey.Pair, []counter.Hit) {
	t.Helper()
	second, delaySecond := newSlowStore(t)
	other, delayOther := newSlowStore(t)
	key := newKeys()
	hits := []counter.Hit{newMinuteHit(key("m")), newMinuteHit(key("s")), newMinuteHit(key("b"))}
	hits[1].Window, hits[2].Algorithm, hits[2].Burst = time.Second, ratelimit.TokenBucket, 9
	pair := valkey.NewPair(second, other, slowTimeout)
	if err := pair.Admit(t.Context(), hits, make([]counter.Admitted, 3)); err != nil { // the scripts are known then
		t.Fatal(err)
	}
	if err := pair.AdmitAll(t.Context(), hits, make([]counter.Admitted, 3)); err != nil {
		t.Fatal(err)
	}
	delaySecond()
	delayOther()
	return pair, hits
}
