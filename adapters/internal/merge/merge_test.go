package merge_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/internal/merge"
)

// store is a store whose calls take a millisecond.
type store struct {
	mutex  sync.Mutex
	counts map[string]uint64
	calls  int
	err    error
	took   time.Duration
}

func (s *store) add(ctx context.Context, of merge.Sum[struct{}]) (uint64, error) {
	timer := time.NewTimer(s.took)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.calls++
	s.counts[of.Key] += uint64(of.N)
	return s.counts[of.Key], s.err
}

func newStore() *store { return &store{counts: map[string]uint64{}, took: time.Millisecond} }

// add adds as a store does that combines additions.
func add(ctx context.Context, a *merge.Adder[struct{}], s *store, key string, n int64) (uint64, error) {
	t := a.Begin(key, struct{}{}, n)
	if t.Waits() {
		return t.Wait(ctx)
	}
	defer a.End(ctx, t)
	return s.add(ctx, merge.Sum[struct{}]{Key: key, N: n, Callers: 1})
}

// TestAdditionsAreCombined checks that parallel additions of different sizes to a key need two calls, that
// each gets its own count, and that those to other keys are counted by themselves.
func TestAdditionsAreCombined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		a := merge.New(time.Second, s.add)
		var mutex sync.Mutex
		var spans [][2]uint64
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				n := int64(1 + i%7)
				after, err := add(t.Context(), a, s, "a", n)
				if err != nil {
					t.Error(err)
				}
				mutex.Lock()
				defer mutex.Unlock()
				spans = append(spans, [2]uint64{after - uint64(n), after})
			})
		}
		all.Wait()
		slices.SortFunc(spans, func(a, b [2]uint64) int { return int(a[0]) - int(b[0]) })
		before := uint64(0)
		for _, span := range spans {
			if span[0] != before {
				t.Fatalf("an addition begins at %d after one that ends at %d", span[0], before)
			}
			before = span[1]
		}
		if before != s.counts["a"] || s.calls != 2 {
			t.Errorf("the last count is %d of %d, after %d calls, want 2: the first and all others", before, s.counts["a"], s.calls)
		}
		if after, err := add(t.Context(), a, s, "b", 3); after != 3 || err != nil {
			t.Errorf("another key: %d, %v", after, err)
		}
	})
}

// TestManyKeys checks with more keys than slots that no addition is lost or sent twice.
func TestManyKeys(t *testing.T) {
	s := newStore()
	s.took = 0
	a := merge.New(time.Second, s.add)
	const keys, callers = 9000, 4
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for k := range keys {
				if _, err := add(t.Context(), a, s, fmt.Sprint(k), 2); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for k := range keys {
		if got := s.counts[fmt.Sprint(k)]; got != 2*callers {
			t.Fatalf("key %d: %d, want %d", k, got, 2*callers)
		}
	}
}

// TestFailedCall checks that the error of a combined call reaches all of its callers, and nobody later.
func TestFailedCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.err = errors.New("unreachable")
		a := merge.New(time.Second, s.add)
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				if _, err := add(t.Context(), a, s, "a", 1); !errors.Is(err, s.err) {
					t.Errorf("%v, want %v", err, s.err)
				}
			})
		}
		all.Wait()
		synctest.Wait()
		s.err = nil
		if _, err := add(t.Context(), a, s, "a", 1); err != nil {
			t.Errorf("after the store is back: %v", err)
		}
	})
}

// TestCallersWhoGiveUp checks that a caller that gives up fails alone, and that its addition is counted.
func TestCallersWhoGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		a := merge.New(time.Second, s.add)
		leaving, leave := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := add(leaving, a, s, "a", 1); !errors.Is(err, context.Canceled) {
				t.Errorf("the first caller: %v", err)
			}
		})
		synctest.Wait()
		all.Go(func() {
			if _, err := add(leaving, a, s, "a", 4); !errors.Is(err, context.Canceled) {
				t.Errorf("a caller that waits: %v", err)
			}
		})
		synctest.Wait()
		all.Go(func() {
			if after, err := add(t.Context(), a, s, "a", 2); err != nil || after != 6 {
				t.Errorf("the caller that stays: %d, %v, want 6", after, err)
			}
		})
		synctest.Wait()
		leave()
		all.Wait()
	})
}

// TestWaitingIsBounded checks that callers wait for the call before theirs and their own together no
// longer than the timeout, and that the combined call is made anyway.
func TestWaitingIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.took = 800 * time.Millisecond
		a := merge.New(time.Second, s.add)
		var all sync.WaitGroup
		began := time.Now()
		for n := range 3 {
			all.Go(func() {
				if _, err := add(t.Context(), a, s, "a", 1); (n > 0) != errors.Is(err, merge.ErrTimeout) {
					t.Errorf("caller %d: %v", n, err)
				}
			})
			synctest.Wait()
		}
		all.Wait()
		if waited := time.Since(began); waited > time.Second {
			t.Errorf("a caller waited for %v, want at most a second", waited)
		}
		time.Sleep(time.Second)
		s.mutex.Lock()
		defer s.mutex.Unlock()
		if s.counts["a"] != 3 {
			t.Errorf("%d additions are made, want 3", s.counts["a"])
		}
	})
}

// TestWaiting checks how many callers are known to wait.
func TestWaiting(t *testing.T) {
	a := merge.New(time.Hour, newStore().add)
	first := a.Begin("a", struct{}{}, 1)
	for n := range 5 {
		if got := first.Waiting(); got != n || first.Waits() {
			t.Errorf("%d wait, want %d", got, n)
		}
		if waits := a.Begin("a", struct{}{}, 1); !waits.Waits() || waits.Waiting() != 0 {
			t.Error("an addition to the same key does not wait")
		}
	}
}

func BenchmarkAlone(b *testing.B) {
	s := newStore()
	a := merge.New(time.Second, s.add)
	keys := make([]string, 1000)
	for i := range keys {
		keys[i] = fmt.Sprint("a key of usual length ", i)
	}
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		a.End(b.Context(), a.Begin(keys[n%len(keys)], struct{}{}, 1))
	}
}
