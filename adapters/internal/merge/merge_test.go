package merge_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/internal/deadline"
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

// add counts hits, each of which is the number that it adds.
func (s *store) add(ctx context.Context, key string, hits []int64, counts []uint64) error {
	timer := time.NewTimer(s.took)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.calls++
	for i, n := range hits {
		s.counts[key] += uint64(n)
		counts[i] = s.counts[key]
	}
	return s.err
}

func newStore() *store { return &store{counts: map[string]uint64{}, took: time.Millisecond} }

// add adds as a store does that combines additions.
func add(ctx context.Context, a *merge.Adder[int64, uint64], s *store, key string, n int64) (uint64, error) {
	return a.Add(ctx, key, &n, time.Now(), func() (uint64, error) {
		var counts [1]uint64
		err := s.add(ctx, key, []int64{n}, counts[:])
		return counts[0], err
	})
}

// TestAdditionsAreCombined checks that parallel additions of different sizes to a key need two
// calls, that each gets its own count, and that those to other keys are counted by themselves.
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
			t.Errorf("the last count is %d of %d, after %d calls, want 2: the first and all others", before,
				s.counts["a"], s.calls)
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

// TestFailedCall checks that the error of a combined call reaches all of its callers, and no one
// later.
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

// TestCallersWhoGiveUp checks that a caller that gives up fails alone, and that its addition is
// counted.
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

// TestHotKeyIsHardlySlower requires that additions to a key take at most 1.1 times as long as a
// call, with far fewer calls than additions, however slow the store is.
func TestHotKeyIsHardlySlower(t *testing.T) {
	for _, took := range []time.Duration{3 * time.Millisecond, 20 * time.Millisecond, 400 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			s := newStore()
			s.took = took
			a := merge.New(500*time.Millisecond, s.add)
			const callers = 20000
			var all sync.WaitGroup
			var sum time.Duration
			for range callers {
				all.Go(func() {
					began := time.Now()
					if _, err := add(t.Context(), a, s, "a", 1); err != nil {
						t.Error(err)
					}
					s.mutex.Lock()
					defer s.mutex.Unlock()
					sum += time.Since(began)
				})
				time.Sleep(50 * time.Microsecond)
			}
			all.Wait()
			if mean := sum / callers; mean > took+took/10 || s.calls > callers/4 || s.counts["a"] != callers {
				t.Errorf("calls of %v: additions take %v, in %d calls for %d of %d", took, mean, s.calls,
					s.counts["a"], callers)
			}
		})
	}
}

// TestNoneFailsThatWouldPassAlone requires that additions to a key which a slow store answers
// within the timeout do not fail because they are combined.
func TestNoneFailsThatWouldPassAlone(t *testing.T) {
	for _, timeout := range []time.Duration{20 * time.Millisecond, 500 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			s, deadlines := newStore(), deadline.NewSource(timeout)
			s.took = timeout
			a := merge.New(timeout, func(ctx context.Context, key string, hits []int64, counts []uint64) error {
				return s.add(deadlines.Call(ctx, time.Now()), key, hits, counts)
			})
			var all sync.WaitGroup
			for range 2000 {
				all.Go(func() {
					if _, err := add(deadlines.Call(t.Context(), time.Now()), a, s, "a", 1); err != nil {
						t.Error(err)
					}
				})
				time.Sleep(timeout / 500)
			}
			all.Wait()
			time.Sleep(2 * timeout) // the timers end
		})
	}
}

// TestHungStoreGetsFewCalls requires that few calls are in progress for a key of a store that does
// not answer, and that each caller ends at its deadline.
func TestHungStoreGetsFewCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 500 * time.Millisecond
		deadlines := deadline.NewSource(timeout)
		var calls atomic.Int64
		s := newStore()
		s.took = time.Hour
		a := merge.New(timeout, func(ctx context.Context, key string, hits []int64, counts []uint64) error {
			calls.Add(1)
			return s.add(deadlines.Call(ctx, time.Now()), key, hits, counts)
		})
		var all sync.WaitGroup
		for range 5000 {
			all.Go(func() {
				began := time.Now()
				_, err := add(deadlines.Call(t.Context(), began), a, s, "a", 1)
				if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took > timeout+timeout/16 {
					t.Errorf("%v after %v", err, took)
				}
			})
			time.Sleep(timeout / 5000)
		}
		all.Wait()
		if n := calls.Load(); n > 200 {
			t.Errorf("%d calls for 5000 additions", n)
		}
		time.Sleep(2 * timeout) // the timers end
	})
}

func BenchmarkAlone(b *testing.B) {
	a := merge.New(time.Second, newStore().add)
	keys := make([]string, 1000)
	for i := range keys {
		keys[i] = fmt.Sprint("a key of usual length ", i)
	}
	b.ReportAllocs()
	now := time.Now()
	for n := 0; b.Loop(); n++ {
		one := int64(1)
		_, _ = a.Add(b.Context(), keys[n%len(keys)], &one, now, func() (uint64, error) { return 1, nil }) // it does not fail
	}
}
