package memory_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/memory"
	"github.com/tollgate-dev/tollgate/adapters/system"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/counter/countertest"
	"github.com/tollgate-dev/tollgate/test/must"
)

func newOverLimit(t testing.TB, c *clocktest.Manual, bytes int64) *memory.OverLimit {
	t.Helper()
	o, err := memory.NewOverLimit(c, memory.Config{OverLimitBytes: bytes})
	must.Succeed(t, err)
	return o
}

func TestOverLimitContract(t *testing.T) {
	countertest.RunOverLimitCache(t, func(t *testing.T) countertest.OverLimitSubject {
		c := newManual()
		return countertest.OverLimitSubject{Cache: newOverLimit(t, c, 1<<20), Now: c.Now, Advance: c.Advance}
	})
}

// requests is a limit of a fixed window.
func requests(n uint32) ratelimit.Limit {
	return ratelimit.Limit{RequestsPerUnit: n, Unit: ratelimit.Hour}
}

// TestOverLimitStaysWithinItsBytes checks the size of the cache after ten times as many keys as it
// can hold, for short and long keys.
func TestOverLimitStaysWithinItsBytes(t *testing.T) {
	const bytes = 2 << 20
	for _, length := range []int{20, 200} {
		c := newManual()
		before := measureHeap()
		o := newOverLimit(t, c, bytes)
		notes := 4 * bytes / (200 + length) // four times as many as fit
		for i := range notes {
			o.Note(newLongKey(i, length), requests(10), c.Now().Add(time.Hour))
		}
		grown := measureHeap() - before
		t.Logf("keys of %d bytes: %d bytes for a bound of %d", length, grown, bytes)
		if grown > bytes*5/4 {
			t.Errorf("keys of %d bytes: %d bytes for a bound of %d", length, grown, bytes)
		}
		held := 0
		for i := range notes {
			if _, over := o.Over(newLongKey(i, length), requests(10), c.Now()); over {
				held++
			}
		}
		if held < notes/8 {
			t.Errorf("keys of %d bytes: the cache contains only %d", length, held)
		}
		runtime.KeepAlive(o)
	}
}

// measureHeap returns the number of bytes in use.
func measureHeap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // frees the memory that finalizers released
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // always far below 2^63
}

func newLongKey(i, length int) string {
	key := fmt.Sprint(i)
	return key + strings.Repeat("k", length-len(key))
}

// TestOverLimitRemovesExpiredKeys fills the cache in several windows and checks that expired keys
// make room for new ones, even if they were read often.
func TestOverLimitRemovesExpiredKeys(t *testing.T) {
	c := newManual()
	o := newOverLimit(t, c, 1<<20)
	for window := range 5 {
		for i := range 2000 {
			key := fmt.Sprint(window, "/", i)
			o.Note(key, requests(1), c.Now().Add(time.Minute))
			for range 5 {
				o.Over(key, requests(1), c.Now())
			}
		}
		held := 0
		for i := range 2000 {
			if _, over := o.Over(fmt.Sprint(window, "/", i), requests(1), c.Now()); over {
				held++
			}
		}
		if held != 2000 {
			t.Fatalf("window %d: the cache contains %d of 2000 keys", window, held)
		}
		c.Advance(2 * time.Minute)
	}
}

func TestOverLimitReadAllocatesNothing(t *testing.T) {
	c := newManual()
	o := newOverLimit(t, c, 1<<20)
	o.Note("k", requests(1), c.Now().Add(time.Hour))
	now := c.Now()
	if n := testing.AllocsPerRun(1000, func() {
		o.Over("k", requests(1), now)
		o.Over("missing", requests(1), now)
	}); n >= 1 {
		t.Errorf("reading makes %v allocations, want 0", n)
	}
}

func BenchmarkOverLimit(b *testing.B) {
	o, err := memory.NewOverLimit(system.Clock{}, memory.Config{OverLimitBytes: 1 << 20})
	must.Succeed(b, err)
	now := time.Now()
	o.Note("hot", requests(1), now.Add(time.Hour))
	for name, key := range map[string]string{"one hot key": "hot", "a key that is not there": "missing"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					o.Over(key, requests(1), now)
				}
			})
		})
	}
}
