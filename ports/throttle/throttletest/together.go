package throttletest

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tollgate-dev/tollgate/ports/throttle"
)

// Instances are the throttles of several processes that count one limit together.
type Instances struct {
	Throttles []throttle.Throttle
	Scope     throttle.Scope
	Limit     uint64
	// AtLeast is how many of Limit tries they admit together when there are many more tries.
	AtLeast uint64
}

const callersOfInstance = 16

// AdmitTogether makes three times as many tries of one key as the limit allows, on all instances
// in parallel, and checks that they admit at most the limit and at least AtLeast of it.
func AdmitTogether(t *testing.T, s Instances) {
	t.Helper()
	tries := 3*int(s.Limit)/(len(s.Throttles)*callersOfInstance) + 1
	var admitted atomic.Uint64
	var all sync.WaitGroup
	for _, th := range s.Throttles {
		for range callersOfInstance {
			all.Go(func() {
				for range tries {
					v, err := th.Try(t.Context(), s.Scope, "k")
					if err != nil {
						t.Errorf("Try: %v", err)
						return
					}
					if v.Allowed {
						admitted.Add(1)
					} else if v.Remaining != 0 {
						t.Errorf("a refused try has %d remaining", v.Remaining)
					}
				}
			})
		}
	}
	all.Wait()
	if n := admitted.Load(); n > s.Limit || n < s.AtLeast {
		t.Errorf("%d instances admit %d tries, want at most %d and at least %d", len(s.Throttles), n,
			s.Limit, s.AtLeast)
	}
}

// BenchmarkTry measures tries of one key far below the limit, of one caller and of many callers at
// the same time.
func BenchmarkTry(b *testing.B, th throttle.Throttle, scope throttle.Scope) {
	b.Helper()
	try := func() {
		if v, err := th.Try(b.Context(), scope, "192.0.2.1"); err != nil || !v.Allowed {
			b.Errorf("%+v, %v", v, err)
		}
	}
	b.Run("one caller", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			try()
		}
	})
	b.Run("many callers", func(b *testing.B) {
		b.ReportAllocs()
		b.SetParallelism(callersOfInstance)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				try()
			}
		})
	})
}
