package lease_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/memory"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/lease"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/test/must"
)

// start is the beginning of a minute.
var start = time.Unix(1_700_000_040, 0)

var errAway = fault.New(fault.Unavailable, "the counter store does not answer")

// store is a store in the process that counts its calls, and fails on demand.
type store struct {
	counter.Store
	calls, hits atomic.Int64
	err         atomic.Pointer[error]
	// enter is called before each call, if it is set.
	enter func(context.Context, []counter.Hit)
}

func newStore(c *clocktest.Manual) *store {
	return &store{Store: memory.NewCounters(c, memory.Config{MaxCounters: 100_000})}
}

func (s *store) Count(ctx context.Context, hits []counter.Hit, results []counter.Result, m counter.Mode) error {
	s.calls.Add(1)
	s.hits.Add(int64(len(hits)))
	if s.enter != nil {
		s.enter(ctx, hits)
	}
	if err := s.err.Load(); err != nil && *err != nil {
		return *err
	}
	return s.Store.Count(ctx, hits, results, m)
}

// instance is an instance of the service, with leases on a store that others may share.
type instance struct {
	*lease.Leases
	clock *clocktest.Manual
	limit uint64
}

func newInstance(s counter.Store, c *clocktest.Manual, limit uint64) *instance {
	return &instance{lease.New(s, c, nil), c, limit}
}

func idOf(key string) lease.ID {
	id := lease.ID(1)
	for _, b := range []byte(key) {
		id = (id ^ lease.ID(b)) * 1099511628211
	}
	return id
}

// batch returns a batch of one hit of a minute.
func (i *instance) batch(key string, hits int64) lease.Batch {
	now := i.clock.Now()
	w := ratelimit.WindowAt(now, time.Minute)
	h := counter.Hit{
		Key: fmt.Sprintf("%s/%d", key, w.Start), Addend: hits, Limit: i.limit,
		Window: w.Length, TTL: w.Length + time.Second, Left: w.End().Sub(now),
	}
	return lease.Batch{Hits: []counter.Hit{h}, IDs: []lease.ID{idOf(key)}, Results: make([]counter.Result, 1), Now: now}
}

func (i *instance) add(t testing.TB, key string, hits int64) uint64 {
	t.Helper()
	b := i.batch(key, hits)
	must.Succeed(t, i.Add(t.Context(), b))
	return b.Results[0].Count
}

// heat makes a key hot, and returns how many hits that took.
func (i *instance) heat(t testing.TB, key string) (hits uint64) {
	t.Helper()
	for range 60 {
		i.add(t, key, 1)
	}
	return 60
}

// count returns the count of a key in the store.
func count(t testing.TB, i *instance, s *store, key string) uint64 {
	t.Helper()
	b := i.batch(key, 0)
	must.Succeed(t, s.Store.Count(t.Context(), b.Hits, b.Results, counter.Each))
	return b.Results[0].Count
}

func newFixture(limit uint64) (*instance, *store) {
	c := clocktest.NewManual(start)
	s := newStore(c)
	return newInstance(s, c, limit), s
}

// TestKeysBecomeHot checks from which rate on a key needs fewer calls than hits.
func TestKeysBecomeHot(t *testing.T) {
	for rate, hot := range map[int]bool{1: false, 45: false, 50: true, 1000: true} {
		i, s := newFixture(1_000_000)
		for range 5 * rate {
			i.add(t, "k", 1)
			i.clock.Advance(time.Second / time.Duration(rate))
		}
		if got := s.calls.Load() < int64(5*rate); got != hot {
			t.Errorf("%d decisions a second: %d calls for %d hits", rate, s.calls.Load(), 5*rate)
		}
	}
}

// TestHotKeyNeedsFewCalls checks how many calls a hot key needs, below the limit and over it, also
// when the window turns.
func TestHotKeyNeedsFewCalls(t *testing.T) {
	for name, c := range map[string]struct {
		limit uint64
		want  uint64
	}{"below the limit": {1_000_000, 0}, "over the limit": {10_000, 60_000}} {
		i, s := newFixture(c.limit)
		var refused uint64
		for range 120_000 { // 60 s, in two windows
			if i.add(t, "k", 1) > c.limit {
				refused++
			}
			i.clock.Advance(500 * time.Microsecond)
		}
		if wanted := 120_000 - 2*min(c.limit, 60_000); name == "over the limit" && refused < wanted-10_000 {
			t.Errorf("%s: %d hits are refused", name, refused)
		}
		if calls := s.calls.Load(); calls > 120_000/50 {
			t.Errorf("%s: %d calls for 120000 hits", name, calls)
		}
	}
}

// TestCoolKeyGivesBack checks that the share of a key is given back when it is not needed for a
// second, and that a key which is hit less than ten times a second for five seconds is counted one
// by one.
func TestCoolKeyGivesBack(t *testing.T) {
	i, s := newFixture(10_000)
	n := i.heat(t, "k")
	if s.calls.Load() == 60 || count(t, i, s, "k") == n {
		t.Fatalf("%d calls and a count of %d after %d hits: there is no share", s.calls.Load(), count(t, i, s, "k"), n)
	}
	i.clock.Advance(500 * time.Millisecond)
	i.Sweep(t.Context())
	if count(t, i, s, "k") == n {
		t.Error("the share is given back at once")
	}
	i.clock.Advance(500 * time.Millisecond)
	i.Sweep(t.Context())
	wantEqual(t, count(t, i, s, "k"), n, "the store counts")
	if i.Stats().Keys.Load() != 1 {
		t.Error("the key is not hot any more after a second")
	}
	for range 12 {
		i.clock.Advance(500 * time.Millisecond)
		i.Sweep(t.Context())
	}
	if i.Stats().Keys.Load() != 0 {
		t.Error("the key is still hot after seven seconds without hits")
	}
	before := s.calls.Load()
	for range 9 {
		i.add(t, "k", 1)
	}
	if s.calls.Load() != before+9 {
		t.Errorf("%d calls for 9 hits of a cool key", s.calls.Load()-before)
	}
}

// TestWarmKeyStaysHot checks that ten decisions a second keep a lease.
func TestWarmKeyStaysHot(t *testing.T) {
	i, _ := newFixture(10_000)
	i.heat(t, "k")
	for n := range 200 {
		i.clock.Advance(100 * time.Millisecond)
		i.add(t, "k", 1)
		if n%5 == 0 {
			i.Sweep(t.Context())
		}
	}
	if i.Stats().Keys.Load() != 1 {
		t.Error("a key with ten decisions a second is not hot any more")
	}
}

// TestCloseGivesBack checks that a service that stops gives back what it holds, and counts exactly
// after that.
func TestCloseGivesBack(t *testing.T) {
	i, s := newFixture(10_000)
	var n uint64
	for k := range 150 { // more than one call gives back
		n = i.heat(t, fmt.Sprint("k", k))
	}
	before := s.calls.Load()
	i.Close(t.Context())
	wantEqual(t, s.calls.Load()-before, 2, "calls gave back 150 shares")
	for k := range 150 {
		if got := count(t, i, s, fmt.Sprint("k", k)); got != n {
			t.Fatalf("the store counts %d after Close, want %d", got, n)
		}
	}
	before = s.calls.Load()
	for range 100 {
		i.add(t, "k1", 1)
	}
	wantEqual(t, s.calls.Load()-before, 100, "calls for 100 hits after Close")
}

// TestWindowTurns checks that the share of an ended window is neither spent nor given back, that
// the key is hot in the next one at once, and that late hits count in their own window.
func TestWindowTurns(t *testing.T) {
	i, s := newFixture(10_000)
	i.clock.Advance(59 * time.Second)
	i.heat(t, "k")
	late := i.batch("k", 1)
	i.clock.Advance(time.Second)
	i.Sweep(t.Context())
	before := s.calls.Load()
	for range 60 {
		i.add(t, "k", 1)
	}
	if calls := s.calls.Load() - before; calls > 15 {
		t.Errorf("%d calls for 60 hits of the next window", calls)
	}
	before = s.calls.Load()
	if err := i.Add(t.Context(), late); err != nil || late.Results[0].Count != 1 { // the counter of the window is gone
		t.Errorf("a late hit: count %d, %v, want 1", late.Results[0].Count, err)
	}
	if s.calls.Load() != before+1 {
		t.Error("a late hit is not counted by itself")
	}
}

// TestOtherKeyWithTheSameID checks that two keys never share a lease.
func TestOtherKeyWithTheSameID(t *testing.T) {
	i, s := newFixture(10_000)
	i.heat(t, "k")
	other := i.batch("other", 1)
	other.IDs[0] = idOf("k")
	for n := range uint64(20) {
		if err := i.Add(t.Context(), other); err != nil || other.Results[0].Count != n+1 {
			t.Fatalf("count %d, %v, want %d", other.Results[0].Count, err, n+1)
		}
	}
	wantEqual(t, count(t, i, s, "other"), 20, "the store counts")
}

// TestGivenBackHitsGoToTheStore checks that hits that a caller gives back are there for all
// instances at once.
func TestGivenBackHitsGoToTheStore(t *testing.T) {
	i, s := newFixture(1_000)
	n := i.heat(t, "k")
	if got := i.add(t, "k", -10); got != n-10 || count(t, i, s, "k") != n-10 {
		t.Errorf("count %d, in the store %d, want %d", got, count(t, i, s, "k"), n-10)
	}
	wantEqual(t, i.add(t, "k", 5_000), n+4_990, "a batch over the limit: count")
	wantEqual(t, i.add(t, "k", 1), n+4_991, "after the batch: count")
	wantEqual(t, i.add(t, "k", -4_500), n+491, "after a part of it is given back: count")
	wantEqual(t, i.add(t, "k", 0), n+491, "a question: count")
}

// TestRoomIsFoundAgain checks that an instance that knows a counter to be at its limit learns
// within 100 ms that another has given hits back.
func TestRoomIsFoundAgain(t *testing.T) {
	one, s := newFixture(300)
	other := newInstance(s, one.clock, 300)
	for n := range uint64(300) {
		if after := one.add(t, "k", 1); after != n+1 {
			t.Fatalf("count %d, want %d", after, n+1)
		}
	}
	other.add(t, "k", -5)
	one.clock.Advance(100 * time.Millisecond)
	if after := one.add(t, "k", 1); after != 296 {
		t.Errorf("count %d after five hits of 300 are given back, want 296", after)
	}
}

// TestMixedBatch checks that one call counts all hits of a batch that need the store, except for a
// hit that waits for another of its key.
func TestMixedBatch(t *testing.T) {
	i, s := newFixture(10_000)
	n := i.heat(t, "hot")
	hot, cold := i.batch("hot", 1), i.batch("cold", 3)
	b := lease.Batch{Now: hot.Now, Results: make([]counter.Result, 5)}
	for _, part := range []lease.Batch{cold, hot, cold, hot, hot} {
		b.Hits, b.IDs = append(b.Hits, part.Hits...), append(b.IDs, part.IDs...)
	}
	b.IDs[2] = 0
	b.Hits[3].Addend = 500 // more than the share
	before := s.calls.Load()
	must.Succeed(t, i.Add(t.Context(), b))
	want := []uint64{3, n + 1, 6, n + 501, n + 502}
	for k := range want {
		if b.Results[k].Count != want[k] {
			t.Errorf("counts %d, want %d", b.Results[k].Count, want[k])
			break
		}
	}
	wantEqual(t, s.calls.Load()-before, 2, "calls")
}

// TestManyHotKeys checks that hot keys for which there is no place are counted one by one.
func TestManyHotKeys(t *testing.T) {
	c := clocktest.NewManual(start)
	s := newStore(c)
	i := newInstance(s, c, 1_000)
	for n := range 12_000 { // for 8192 places
		key := fmt.Sprint("k", n)
		b := i.batch(key, 1)
		for want := uint64(1); want <= 55; want++ {
			if err := i.Add(t.Context(), b); err != nil || b.Results[0].Count != want {
				t.Fatalf("key %d: count %d, %v, want %d", n, b.Results[0].Count, err, want)
			}
		}
	}
	if n := i.Stats().Keys.Load(); n > 8192 || n < 6000 {
		t.Errorf("%d keys have a lease, want at most 8192", n)
	}
}

// TestStoreAway checks that an instance spends what it holds while the store is away and then
// fails, and that it takes one hit after a failure.
func TestStoreAway(t *testing.T) {
	i, s := newFixture(10_000)
	n := i.heat(t, "k")
	held := count(t, i, s, "k") - n
	err := error(errAway)
	s.err.Store(&err)
	for range held {
		n++
		if got := i.add(t, "k", 1); got != n {
			t.Fatalf("count %d from the share, want %d", got, n)
		}
	}
	if err := i.Add(t.Context(), i.batch("k", 1)); !errors.Is(err, errAway) {
		t.Fatalf("without a share: %v", err)
	}
	s.err.Store(nil)
	if got := i.add(t, "k", 1); got != n+1 || count(t, i, s, "k") != n+1 {
		t.Errorf("count %d, in the store %d, want %d: a hit after a failure takes no share", got,
			count(t, i, s, "k"), n+1)
	}
}

// TestOneCallAtATime checks that the hits of a key that arrive during a call wait for it, that the
// next call counts all of them, and that each gets its own count.
func TestOneCallAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, s := newFixture(50) // shares of two hits at most
		i.heat(t, "k")
		i.clock.Advance(time.Minute)
		entered, pass := make(chan []counter.Hit), make(chan struct{})
		s.enter = func(_ context.Context, hits []counter.Hit) { entered <- hits; <-pass }
		var all sync.WaitGroup
		var mu sync.Mutex
		seen := map[uint64]bool{}
		for range 21 {
			all.Go(func() {
				after := i.add(t, "k", 1)
				mu.Lock()
				defer mu.Unlock()
				if seen[after] {
					t.Errorf("two hits get the count %d", after)
				}
				seen[after] = true
			})
		}
		for _, want := range []int64{1, 20} {
			hits := <-entered
			synctest.Wait() // the others wait; another call would wait here
			if len(hits) != 1 || hits[0].Addend != want {
				t.Errorf("a call of %+v, want an addend of %d", hits, want)
			}
			pass <- struct{}{}
		}
		all.Wait()
		if len(seen) != 21 || !seen[1] || !seen[21] {
			t.Errorf("counts %v, want 1 to 21", seen)
		}
	})
}

// TestFailedCallFailsThoseWhoWait checks that callers do not wait for a second call that fails.
func TestFailedCallFailsThoseWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, s := newFixture(50)
		i.heat(t, "k")
		i.clock.Advance(time.Minute)
		entered, pass := make(chan struct{}), make(chan struct{})
		s.enter = func(context.Context, []counter.Hit) { entered <- struct{}{}; <-pass }
		err := error(errAway)
		s.err.Store(&err)
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				if err := i.Add(t.Context(), i.batch("k", 1)); !errors.Is(err, errAway) {
					t.Errorf("%v, want the error of the store", err)
				}
			})
		}
		<-entered
		synctest.Wait()
		pass <- struct{}{}
		all.Wait()
	})
}

// TestHitsAfterAFailureGoToTheStore checks that hits after a failed call do not wait for each
// other: the store must learn how many callers it does not answer.
func TestHitsAfterAFailureGoToTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, s := newFixture(5_000)
		i.heat(t, "k")
		i.clock.Advance(time.Minute)
		err := error(errAway)
		s.err.Store(&err)
		if err := i.Add(t.Context(), i.batch("k", 1)); !errors.Is(err, errAway) {
			t.Fatal(err)
		}
		s.err.Store(nil)
		entered, pass := make(chan struct{}), make(chan struct{})
		s.enter = func(context.Context, []counter.Hit) { entered <- struct{}{}; <-pass }
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if got := i.add(t, "k", 1); got < 1 || got > 4 {
					t.Errorf("count %d, want 1 to 4", got)
				}
			})
		}
		for range 4 {
			<-entered
		}
		close(pass)
		all.Wait()
		s.enter = nil
		if got := i.add(t, "k", 1); got != 5 {
			t.Errorf("count %d after the failure, want 5", got)
		}
	})
}

// TestCallersWhoGiveUp checks that a caller that gives up during its call loses no share and fails
// no one else, and that one that gives up while it waits is not counted.
func TestCallersWhoGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, s := newFixture(50)
		i.heat(t, "k")
		i.clock.Advance(time.Minute)
		entered, pass := make(chan struct{}), make(chan struct{})
		s.enter = func(ctx context.Context, _ []counter.Hit) {
			entered <- struct{}{}
			select {
			case <-pass:
			case <-ctx.Done():
				t.Error("the context of the caller ends the call")
			}
		}
		leaving, leave := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			if err := i.Add(leaving, i.batch("k", 1)); !fault.Is(err, fault.Unavailable) {
				t.Errorf("the caller that left during its call: %v", err)
			}
		})
		<-entered
		all.Go(func() {
			if err := i.Add(leaving, i.batch("k", 1)); !fault.Is(err, fault.Unavailable) {
				t.Errorf("the caller that left while it waited: %v", err)
			}
		})
		all.Go(func() {
			wantEqual(t, i.add(t, "k", 1), 2, "the caller that stayed: count")
		})
		synctest.Wait()
		leave()
		synctest.Wait()
		pass <- struct{}{}
		<-entered
		pass <- struct{}{}
		all.Wait()
		i.clock.Advance(time.Minute)
		if err := i.Add(leaving, i.batch("k", 1)); !fault.Is(err, fault.Unavailable) {
			t.Errorf("a caller that left before: %v", err)
		}
	})
}

// TestCloseWaitsForCalls checks that a share that is taken while the service stops is given back.
func TestCloseWaitsForCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, s := newFixture(10_000)
		n := i.heat(t, "k")
		entered, pass := make(chan struct{}), make(chan struct{})
		s.enter = func(context.Context, []counter.Hit) { entered <- struct{}{}; <-pass }
		var all sync.WaitGroup
		all.Go(func() { i.add(t, "k", 400) })
		<-entered
		all.Go(func() { i.Close(t.Context()) })
		synctest.Wait()
		pass <- struct{}{}
		<-entered // gives back
		pass <- struct{}{}
		all.Wait()
		wantEqual(t, count(t, i, s, "k"), n+400, "the store counts")
	})
}

// TestInstancesTogether checks with parallel callers that instances together admit the limit, and
// no more than it: those that end at the last moment are given back.
func TestInstancesTogether(t *testing.T) {
	for _, limit := range []uint64{1, 30, 1_000, 40_000} {
		c := clocktest.NewManual(start)
		s := newStore(c)
		var admitted atomic.Uint64
		var all sync.WaitGroup
		for range 4 {
			i := newInstance(s, c, limit)
			for range 4 {
				all.Go(func() {
					for range limit/4 + 100 {
						if i.add(t, "k", 1) <= limit {
							admitted.Add(1)
						}
					}
				})
			}
		}
		all.Wait()
		if n := admitted.Load(); n > limit || n < limit*3/4 {
			t.Errorf("%d hits are admitted, want at most %d, and little less", n, limit)
		}
	}
}

func BenchmarkHotKey(b *testing.B) {
	c := clocktest.NewManual(start)
	i := newInstance(newStore(c), c, 1<<40)
	i.heat(b, "k")
	one := i.batch("k", 1)
	b.ReportAllocs()
	for b.Loop() {
		must.Succeed(b, i.Add(b.Context(), one))
	}
}

// BenchmarkColdKeys counts 100,000 keys that are not hot in turn, with and without leases.
func BenchmarkColdKeys(b *testing.B) {
	c := clocktest.NewManual(start)
	s := newStore(c)
	i := newInstance(s, c, 1<<40)
	batches := make([]lease.Batch, 100_000)
	for n := range batches {
		batches[n] = i.batch(fmt.Sprint("k", n), 1)
	}
	for name, add := range map[string]func(lease.Batch) error{
		"leases": func(b lease.Batch) error { return i.Add(context.Background(), b) },
		"store":  func(b lease.Batch) error { return s.Count(context.Background(), b.Hits, b.Results, counter.Each) },
	} {
		b.Run(name, func(b *testing.B) {
			n := 0
			for b.Loop() {
				n++
				if n%len(batches) == 0 {
					c.Advance(time.Second)
				}
				must.Succeed(b, add(batches[n%len(batches)]))
			}
		})
	}
}

// wantEqual checks that both are deeply equal.
func wantEqual[V any](t testing.TB, got, want V, what string, args ...any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf(what+": got %v, want %v", append(args, got, want)...)
	}
}
