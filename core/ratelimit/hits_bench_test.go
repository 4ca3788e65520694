package ratelimit

import (
	"testing"
	"time"
)

// BenchmarkHits counts decisions about one rule in parallel, as each decision does: in the
// statistics and in its keys.
func BenchmarkHits(b *testing.B) {
	h, budget, now := &Hits{}, &HotKeyBudget{}, time.Now()
	entries := []Entry{{Key: "k", Value: "v"}}
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			h.Within.Add(1)
			h.Keys.Count(KeyHits{Entries: entries, Hits: 1, Now: now}, budget)
		}
	})
}
