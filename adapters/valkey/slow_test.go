package valkey_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/valkey"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/instance"
	"github.com/tollgate-dev/tollgate/test/must"
)

// newSlowStore returns a client of a server behind a proxy that delays nothing yet. The connection
// is made.
func newSlowStore(t *testing.T, timeout time.Duration) (*valkey.Client, *instance.Delayer) {
	t.Helper()
	d, err := instance.NewDelayer(sharedServer(t))
	must.Succeed(t, err)
	t.Cleanup(d.Close)
	cfg := newConfig(d.Address)
	cfg.Timeout, cfg.PoolSize = timeout, 1
	c := open(t, cfg)
	await.Until(t, "a connection", func() bool { return c.Ping(t.Context()) == nil })
	return c, d
}

// TestMergedHitsPassOnSlowStore requires that calls for one key do not wait for each other's
// answers: the store gets the hits of all while it answers no call. Each has its own count.
func TestMergedHitsPassOnSlowStore(t *testing.T) {
	t.Parallel()
	c, d := newSlowStore(t, await.Timeout)
	direct, h := open(t, newConfig(sharedServer(t))), newMinuteHit(newKeys()("hot"))
	look := h
	look.Addend = 0
	if _, err := add(t, c, h); err != nil {
		t.Fatal(err)
	}
	const callers = 50
	_, release := d.Hold(h.Key)
	defer release()
	results := make(chan uint64, callers)
	for range callers {
		go func() {
			after := make([]counter.Result, 1)
			if err := c.Count(t.Context(), []counter.Hit{h}, after, counter.Each); err != nil {
				t.Error(err)
			}
			results <- after[0].Count
		}()
	}
	await.Until(t, "the hits of all", func() bool {
		counts, err := add(t, direct, look)
		return err == nil && counts[0] == callers+1
	})
	release()
	seen := map[uint64]bool{}
	for range callers {
		seen[await.Receive(t, "a count", results)] = true
	}
	if len(seen) != callers {
		t.Errorf("%d different counts of %d hits", len(seen), callers)
	}
}

// TestMergedScriptsDecideAboutEach requires that hits of other algorithms, which one script decides
// about for several callers, are admitted and refused as if each had its own.
func TestMergedScriptsDecideAboutEach(t *testing.T) {
	t.Parallel()
	const callers, limit = 250, 30
	for _, algorithm := range []ratelimit.Algorithm{ratelimit.SlidingWindow, ratelimit.TokenBucket} {
		t.Run(fmt.Sprint(algorithm), func(t *testing.T) {
			c, d := newSlowStore(t, await.Timeout)
			h := newMinuteHit(newKeys()("hot"))
			h.Algorithm, h.Limit, h.Burst, h.Window = algorithm, limit, limit, 366*24*time.Hour
			look := func() ratelimit.Verdict {
				read, after := h, make([]counter.Result, 1)
				read.Addend = 0
				must.Succeed(t, c.Count(t.Context(), []counter.Hit{read}, after, counter.Each))
				return after[0].Verdict
			}
			look() // the server has the script
			_, release := d.Hold(h.Key)
			defer release()
			verdicts := make(chan ratelimit.Verdict, callers)
			for range callers {
				go func() {
					after := make([]counter.Result, 1)
					if err := c.Count(t.Context(), []counter.Hit{h}, after, counter.Each); err != nil {
						t.Error(err)
					}
					verdicts <- after[0].Verdict
				}()
			}
			release()
			left := map[uint64]int{}
			for range callers {
				if v := await.Receive(t, "a verdict", verdicts); v.Admitted {
					left[v.Remaining]++
				} else if v.Remaining != 0 {
					t.Errorf("refused, and %d are left", v.Remaining)
				}
			}
			for n := range uint64(limit) {
				if left[n] != 1 {
					t.Errorf("%d hits were admitted as the last before %d, want 1", left[n], n)
				}
			}
			if len(left) != limit || look().Remaining != 0 {
				t.Errorf("%d hits were admitted, want %d; then %d are left", len(left), limit, look().Remaining)
			}
		})
	}
}

// TestBothStoresAreAskedAtTheSameTime requires that both stores get their hits while neither
// answers.
func TestBothStoresAreAskedAtTheSameTime(t *testing.T) {
	t.Parallel()
	pair, hits, delayers := newSlowPair(t, await.Timeout)
	for name, call := range map[string]func(context.Context) error{
		"Add": func(ctx context.Context) error {
			return pair.Count(ctx, hits[:2], make([]counter.Result, 2), counter.Each)
		},
		"Admit": func(ctx context.Context) error {
			return pair.Count(ctx, hits, make([]counter.Result, 3), counter.Each)
		},
		"AdmitAll": func(ctx context.Context) error {
			return pair.Count(ctx, hits, make([]counter.Result, 3), counter.AllOrNone)
		},
	} {
		other, releaseOther := delayers[0].Hold(hits[0].Key)
		second, releaseSecond := delayers[1].Hold(hits[1].Key)
		defer releaseOther()
		defer releaseSecond()
		result := make(chan error, 1)
		go func() { result <- call(t.Context()) }()
		await.Closed(t, name+" on the other store", other)
		await.Closed(t, name+" on the store of seconds", second)
		releaseOther()
		releaseSecond()
		if err := await.Receive(t, name, result); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestStepsShareOneDeadline requires that calls which need several steps have one timeout for all
// of them: with two stores, and with more hits than one script counts. Two steps take longer than
// the timeout, one does not.
func TestStepsShareOneDeadline(t *testing.T) {
	const timeout, delay = 300 * time.Millisecond, 200 * time.Millisecond
	for name, newCall := range map[string]func(*testing.T) (call func(context.Context) error, delayers []*instance.Delayer){
		"two stores": func(t *testing.T) (func(context.Context) error, []*instance.Delayer) {
			pair, hits, delayers := newSlowPair(t, timeout)
			return func(ctx context.Context) error {
				return pair.Count(ctx, hits[:2], make([]counter.Result, 2), counter.AllOrNone)
			}, delayers
		},
		"many hits": func(t *testing.T) (func(context.Context) error, []*instance.Delayer) {
			one, d := newSlowStore(t, timeout)
			many := newManyHits()
			return func(ctx context.Context) error {
				return one.Count(ctx, many, make([]counter.Result, len(many)), counter.AllOrNone)
			}, []*instance.Delayer{d}
		},
		"many of all algorithms": func(t *testing.T) (func(context.Context) error, []*instance.Delayer) {
			one, d := newSlowStore(t, timeout)
			many := newManyHits()
			return func(ctx context.Context) error {
				return one.Count(ctx, many, make([]counter.Result, len(many)), counter.AllOrNone)
			}, []*instance.Delayer{d}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			call, delayers := newCall(t)
			for _, d := range delayers {
				d.SetDelay(delay)
			}
			if err := call(t.Context()); !fault.Is(err, fault.Unavailable) {
				t.Errorf("%v, want fault.Unavailable", err)
			}
		})
	}
}

// newManyHits returns more hits than one script counts.
func newManyHits() []counter.Hit {
	key, many := newKeys(), make([]counter.Hit, 600)
	for i := range many {
		many[i] = newMinuteHit(key(fmt.Sprint(i)))
	}
	return many
}

// newSlowPair returns a pair of stores, and hits: one of the other store, one of the store of
// seconds, and one of another algorithm. The proxies are those of the other store and of the store
// of seconds.
func newSlowPair(t *testing.T, timeout time.Duration) (*valkey.Pair, []counter.Hit, []*instance.Delayer) {
	t.Helper()
	second, delaySecond := newSlowStore(t, timeout)
	other, delayOther := newSlowStore(t, timeout)
	key := newKeys()
	hits := []counter.Hit{newMinuteHit(key("m")), newMinuteHit(key("s")), newMinuteHit(key("b"))}
	hits[1].Window, hits[2].Algorithm, hits[2].Burst = time.Second, ratelimit.TokenBucket, 9
	pair := valkey.NewPair(second, other, timeout)
	await.Until(t, "stores that know the scripts", func() bool {
		return pair.Count(t.Context(), hits, make([]counter.Result, 3), counter.Each) == nil &&
			pair.Count(t.Context(), hits, make([]counter.Result, 3), counter.AllOrNone) == nil
	})
	return pair, hits, []*instance.Delayer{delayOther, delaySecond}
}
