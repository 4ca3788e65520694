package memcached

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/ports/counter"
)

// TestStatesAtTimes stores the states of a sliding window and a bucket at random times, as commands
// store them, and reads them again: the verdicts are those of the algorithms, and a value lives as
// long as it matters.
func TestStatesAtTimes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom([]time.Duration{time.Second, time.Minute, time.Hour}).Draw(t, "unit")
		limit, burst := rapid.Uint64Range(1, 20).Draw(t, "limit"), rapid.Uint64Range(1, 20).Draw(t, "burst")
		now, values, ends := time.UnixMicro(1_800_000_000_000_000), map[string]uint64{}, map[string]time.Time{}
		read := func(key string) uint64 {
			if now.After(ends[key]) {
				return 0
			}
			return values[key]
		}
		var sliding ratelimit.Sliding
		var full int64
		for range rapid.IntRange(1, 40).Draw(t, "calls") {
			now = now.Add(time.Duration(rapid.Int64Range(0, 2*int64(unit)).Draw(t, "step")))
			n := rapid.Int64Range(-1, 22).Draw(t, "hits")
			window := &counter.Hit{Key: "w", Limit: limit, Window: unit, Algorithm: ratelimit.SlidingWindow}
			filled := &counter.Hit{Key: "b", Limit: limit, Window: unit, Burst: burst, Algorithm: ratelimit.TokenBucket}
			number := now.UnixMicro() / unit.Microseconds()
			states := []*admitState{
				{
					hit: window, sliding: ratelimit.Sliding{
						Window: number, Current: read(windowKey("w", number)), Earlier: read(windowKey("w", number-1)),
					},
				},
				{hit: filled, full: int64(read("b"))},
			}
			var want [2]ratelimit.Verdict
			sliding, want[0] = ratelimit.SlidingLimit{Limit: limit, Window: unit}.Take(sliding, now, n)
			full, want[1] = ratelimit.Bucket{Limit: limit, Window: unit, Burst: burst}.Take(full, now, n)
			for i, s := range states {
				if got := s.take(s.hit, now, n); got != want[i] {
					t.Fatalf("%v, %d hits: %+v, want %+v", s.hit.Algorithm, n, got, want[i])
				}
				if c := s.command(now); s.changed {
					values[c.key], ends[c.key] = c.value, now.Add(c.life)
				}
			}
		}
	})
}
