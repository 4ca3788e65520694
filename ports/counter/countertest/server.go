package countertest

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/test/await"
)

// This file is for stores that count on a server, which other tests and runs use too, and which may
// come and go.

// Recovers tests a store whose server starts and stops, twice over: it counts whenever the server
// is there, and reports fault.Unavailable whenever it is not. The server has not been started yet.
func Recovers(t *testing.T, store counter.Store, start, stop func()) {
	t.Helper()
	one, after := []counter.Hit{hit("recovers", 1, noLimit)}, make([]uint64, 1)
	Away(t, store)
	for range 2 {
		start()
		await.Until(t, "counting once the server is there", func() bool { return store.Add(t.Context(), one, after) == nil })
		if err := store.Ping(t.Context()); err != nil {
			t.Errorf("Ping: %v", err)
		}
		stop()
		await.Until(t, "fault.Unavailable once the server is away", func() bool {
			return fault.Is(store.Add(t.Context(), one, after), fault.Unavailable)
		})
	}
}

// BenchmarkAdd measures one hit a call, by many callers, over a few hundred counters. key is that
// of a Subject.
func BenchmarkAdd(b *testing.B, store counter.Store, key func(name string) string) {
	b.Helper()
	names := make([]string, 512)
	for i := range names {
		names[i] = key(fmt.Sprint(i))
	}
	var worker atomic.Int64
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		hits, after := []counter.Hit{hit("", 1, noLimit)}, make([]uint64, 1)
		for i := int(worker.Add(1)) * 31; pb.Next(); i++ {
			hits[0].Key = names[i%len(names)]
			if err := store.Add(b.Context(), hits, after); err != nil {
				b.Error(err)
			}
		}
	})
}
