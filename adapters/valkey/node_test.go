package valkey

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestRoomOfANode checks that at most maxCalls calls are in progress, that those that wait get room
// as soon as there is some, and that one that gives up does not take any.
func TestRoomOfANode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		var inProgress, most atomic.Int64
		var all sync.WaitGroup
		for range 3 * maxCalls {
			all.Go(func() {
				if err := n.acquire(t.Context()); err != nil {
					t.Error(err)
				}
				defer n.release()
				if now := inProgress.Add(1); now > most.Load() {
					most.Store(now)
				}
				time.Sleep(time.Second)
				inProgress.Add(-1)
			})
		}
		synctest.Wait()
		leaving, leave := context.WithTimeout(t.Context(), time.Millisecond)
		defer leave()
		if err := n.acquire(leaving); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a call that gives up: %v", err)
		}
		began := time.Now()
		all.Wait()
		if took := time.Since(began); took > 3*time.Second || most.Load() != maxCalls {
			t.Errorf("%d calls at once took %v, want %d and 3 s", most.Load(), took, maxCalls)
		}
		if n.calls.Load() != 0 || n.waiting.Load() != 0 {
			t.Errorf("%d calls are in progress and %d wait in the end", n.calls.Load(), n.waiting.Load())
		}
	})
}

// BenchmarkRoomOfANode takes and gives back room in parallel.
func BenchmarkRoomOfANode(b *testing.B) {
	n := newNode()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if n.acquire(context.Background()) == nil {
				n.release()
			}
		}
	})
}
