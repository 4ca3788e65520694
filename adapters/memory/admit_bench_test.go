package memory_test

import (
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/memory"
	"github.com/tollgate-dev/tollgate/adapters/system"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/ports/counter"
)

// BenchmarkAdmit measures one hit a call, by many callers, for each algorithm.
func BenchmarkAdmit(b *testing.B) {
	for _, a := range []ratelimit.Algorithm{ratelimit.SlidingWindow, ratelimit.TokenBucket} {
		for name, limit := range map[string]uint64{"admitted": 4e9, "refused": 1} {
			b.Run(a.String()+" "+name, func(b *testing.B) {
				store := memory.NewCounters(system.Clock{}, memory.Config{MaxCounters: 1000})
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					hits := []counter.Hit{
						{
							Key: "k", Addend: 1, Limit: limit, Burst: limit, Window: time.Hour, TTL: time.Hour,
							Algorithm: a,
						},
					}
					results := make([]counter.Result, 1)
					for pb.Next() {
						if err := store.Count(b.Context(), hits, results, counter.Each); err != nil {
							b.Error(err)
						}
					}
				})
			})
		}
	}
}
