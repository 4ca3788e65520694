package memory_test

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/adapters/memory"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/ports/counter/countertest"
	"github.com/tollgate-dev/tollgate/test/must"
)

func newManual() *clocktest.Manual {
	return clocktest.NewManual(time.Date(2030, time.May, 6, 7, 8, 9, 0, time.UTC))
}

func TestCountersContract(t *testing.T) {
	for name, limit := range map[string]int{"one shard": 1000, "many shards": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			open := func(*testing.T) countertest.Subject {
				c := newManual()
				return countertest.Subject{
					Store:   memory.NewCounters(c, memory.Config{MaxCounters: limit}),
					Key:     func(name string) string { return name },
					Advance: c.Advance, Now: c.Now,
				}
			}
			countertest.Run(t, open)
		})
	}
}

func addHits(t testing.TB, c *memory.Counters, key string, addend int64, ttl time.Duration) uint64 {
	t.Helper()
	after, err := counter.Add(t.Context(), c, counter.Hit{Key: key, Addend: addend, TTL: ttl})
	must.Succeed(t, err)
	return after
}

func TestFullStoreRemovesCounterThatExpiresFirst(t *testing.T) {
	c := memory.NewCounters(newManual(), memory.Config{MaxCounters: 3})
	addHits(t, c, "middle", 1, 2*time.Minute)
	addHits(t, c, "soon", 1, time.Minute)
	addHits(t, c, "late", 1, 3*time.Minute)
	addHits(t, c, "later", 1, 4*time.Minute)
	for key, wanted := range map[string]uint64{"soon": 0, "middle": 1, "late": 1, "later": 1} {
		if got := addHits(t, c, key, 0, time.Minute); got != wanted {
			t.Errorf("%s: count %d, want %d", key, got, wanted)
		}
	}
	if c.Evicted() != 1 || c.Len() != 3 {
		t.Errorf("evicted %d, kept %d, want 1 and 3", c.Evicted(), c.Len())
	}
}

func TestExpiredCountersAreRemovedFirst(t *testing.T) {
	clock := newManual()
	c := memory.NewCounters(clock, memory.Config{MaxCounters: 100})
	for i := range 100 {
		addHits(t, c, fmt.Sprint("old", i), 1, time.Minute)
	}
	clock.Advance(time.Minute)
	for i := range 100 {
		addHits(t, c, fmt.Sprint("new", i), 1, time.Minute)
	}
	for i := range 100 {
		if addHits(t, c, fmt.Sprint("new", i), 0, time.Minute) != 1 {
			t.Errorf("counter new%d was removed", i)
		}
	}
	if c.Evicted() != 0 || c.Len() != 100 {
		t.Errorf("evicted %d, kept %d, want 0 and 100", c.Evicted(), c.Len())
	}
}

func TestExpiredCountersAreRemoved(t *testing.T) {
	clock := newManual()
	c := memory.NewCounters(clock, memory.Config{MaxCounters: 10_000})
	for i := range 1000 {
		addHits(t, c, fmt.Sprint("old", i), 1, time.Minute)
	}
	clock.Advance(time.Minute)
	for i := range 1000 {
		addHits(t, c, fmt.Sprint("new", i), 1, time.Minute)
	}
	if c.Len() > 1010 { // each shard may contain one expired counter
		t.Errorf("%d counters kept, want at most 1010", c.Len())
	}
}

// TestCountersAgainstModel compares the store with a map after random hits and time steps.
func TestCountersAgainstModel(t *testing.T) {
	type entry struct {
		count   uint64
		expires time.Time
	}
	rapid.Check(t, func(t *rapid.T) {
		clock := newManual()
		c := memory.NewCounters(clock, memory.Config{MaxCounters: 1 << 16})
		model := make(map[string]entry)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			clock.Advance(time.Duration(rapid.IntRange(0, 3).Draw(t, "seconds")) * time.Second)
			h := counter.Hit{
				Key:    rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "key"),
				Addend: rapid.Int64Range(-5, 9).Draw(t, "addend"),
				TTL:    time.Duration(rapid.IntRange(1, 4).Draw(t, "ttl")) * time.Second,
			}
			e, found := model[h.Key]
			if found && !clock.Now().Before(e.expires) {
				e, found = entry{}, false
			}
			if !found && h.Addend > 0 {
				e.expires = clock.Now().Add(h.TTL)
			}
			if found || h.Addend > 0 {
				e.count = uint64(max(int64(e.count)+h.Addend, 0))
				model[h.Key] = e
			} else {
				delete(model, h.Key)
			}
			after, err := counter.Add(t.Context(), c, h)
			must.Succeed(t, err)
			if after != e.count {
				t.Fatalf("%+v: count %d, want %d", h, after, e.count)
			}
		}
	})
}

func TestMillionCountersFitIn200MiB(t *testing.T) {
	million := 1_000_000
	if testing.Short() {
		million /= 10 // the tenth must fit in a tenth
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	c := memory.NewCounters(newManual(), memory.Config{MaxCounters: 2_000_000})
	for i := range million {
		addHits(t, c, fmt.Sprintf("prefix|domain|remote_address=10.%d.0.1|minute|%d", i, i), 1, time.Hour)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if c.Len() != million || c.Evicted() != 0 {
		t.Errorf("%d counters kept, %d evicted", c.Len(), c.Evicted())
	}
	if used := after.HeapAlloc - min(before.HeapAlloc, after.HeapAlloc); used > uint64(million)*(200<<20)/1_000_000 {
		t.Errorf("%d counters take %d MiB, want at most 200 for a million", million, used>>20)
	}
	runtime.KeepAlive(c)
}

func TestCountingAllocatesOnlyForNewKeys(t *testing.T) {
	c := memory.NewCounters(newManual(), memory.Config{MaxCounters: 1 << 20})
	hits := []counter.Hit{{Key: "a", Addend: 1, TTL: time.Hour}, {Key: "b", Addend: 1, TTL: time.Hour}}
	counts := make([]counter.Result, 2)
	allocations := testing.AllocsPerRun(100, func() {
		must.Succeed(t, c.Count(t.Context(), hits, counts, counter.Each))
	})
	if allocations > 0 {
		t.Errorf("counting known keys makes %v allocations, want 0", allocations)
	}
}

func TestConfigNamesTheVariable(t *testing.T) {
	for name, cfg := range map[string]memory.Config{
		"COUNTERS_IN_PROCESS_MAX must be at least 1, not 0":      {MaxSessions: 1},
		"LOCAL_CACHE_SIZE_IN_BYTES must not be negative, not -1": {MaxCounters: 1, MaxSessions: 1, OverLimitBytes: -1},
	} {
		if err := cfg.Validate(); err == nil || err.Error() != name {
			t.Errorf("%+v: %v, want %q", cfg, err, name)
		}
	}
	if err := (memory.Config{MaxCounters: 1, MaxSessions: 1}).Validate(); err != nil {
		t.Errorf("the smallest valid values: %v", err)
	}
}

func BenchmarkCountersAdd(b *testing.B) {
	c := memory.NewCounters(newManual(), memory.Config{MaxCounters: 2_000_000})
	keys := make([]string, 4096)
	for i := range keys {
		keys[i] = fmt.Sprintf("prefix|domain|remote_address=10.%d.0.1|minute|29000000", i)
	}
	var worker atomic.Int64
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		hits, after := []counter.Hit{{Addend: 1, TTL: time.Minute}}, make([]counter.Result, 1)
		for i := int(worker.Add(1)) * 997; pb.Next(); i++ {
			hits[0].Key = keys[i%len(keys)]
			if err := c.Count(b.Context(), hits, after, counter.Each); err != nil {
				b.Error(err)
			}
		}
	})
}

// BenchmarkMillionCounters measures how much memory a million live counters take for each
// algorithm, at most 200 bytes each: when they are new, and when each has been used in a second
// window too.
func BenchmarkMillionCounters(b *testing.B) {
	const million = 1_000_000
	for i := range ratelimit.AlgorithmNames() {
		a := ratelimit.Algorithm(i) //nolint:gosec // an index of a short list
		for _, windows := range []int{1, 2} {
			b.Run(fmt.Sprintf("%v/windows=%d", a, windows), func(b *testing.B) {
				before := measureHeap()
				var c *memory.Counters
				for b.Loop() {
					clock := newManual()
					c = memory.NewCounters(clock, memory.Config{MaxCounters: 2 * million})
					for range windows {
						for i := range million {
							admitOne(b, c, counter.Hit{
								Key:    fmt.Sprintf("prefix|domain|remote_address=10.%d.0.1|minute|%d", i, i),
								Addend: 1, Limit: 100, Burst: 100, Window: time.Hour, TTL: time.Hour, Algorithm: a,
							})
						}
						clock.Advance(time.Hour)
					}
				}
				b.ReportMetric(float64(measureHeap()-before)/million, "B/counter")
				runtime.KeepAlive(c)
			})
		}
	}
}

func admitOne(b *testing.B, c *memory.Counters, h counter.Hit) {
	b.Helper()
	var results [1]counter.Result
	must.Succeed(b, c.Count(b.Context(), []counter.Hit{h}, results[:], counter.Each))
}
