package ratelimit

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestShareSize(t *testing.T) {
	for name, c := range map[string]struct{ limit, counted, used, want uint64 }{
		"small limit":                     {limit: 50, want: 1},
		"first share":                     {limit: 10_000, want: 10},
		"first share of a large limit":    {limit: 1_000_000, want: 1_000},
		"grows with the use":              {limit: 10_000, counted: 1_600, used: 1_600, want: 100},
		"shrinks with the rest":           {limit: 10_000, counted: 9_680, used: 9_680, want: 10},
		"one at a time near the limit":    {limit: 10_000, counted: 9_937, used: 9_937, want: 1},
		"the limit is reached":            {limit: 10_000, counted: 10_000, used: 1, want: 1},
		"the count is over the limit":     {limit: 10_000, counted: 10_007, used: 1, want: 1},
		"used little, others used most":   {limit: 10_000, counted: 9_900, used: 1, want: 3},
		"the greatest limit, nothing yet": {limit: math.MaxUint64, want: math.MaxUint64 / 1_000},
	} {
		if got := ShareSize(c.limit, c.counted, c.used); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestShareSizeBounds checks the bounds from which the documented share of the limit follows.
func TestShareSizeBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Uint64Min(1).Draw(t, "limit")
		counted := rapid.Uint64().Draw(t, "counted")
		used := rapid.Uint64Max(counted).Draw(t, "used")
		size := ShareSize(limit, counted, used)
		rest := limit - min(counted, limit)
		if size < 1 || size > math.MaxInt64 {
			t.Fatalf("size %d cannot be added to a counter", size)
		}
		if size == 1 {
			return
		}
		if size > rest/32 {
			t.Errorf("size %d is more than 1/32 of the rest %d", size, rest)
		}
		if size > max(limit/1000, used/16) {
			t.Errorf("size %d is more than both 1/1000 of the limit %d and 1/16 of the used %d", size, limit, used)
		}
		if more := rapid.Uint64Range(counted, math.MaxUint64).Draw(t, "more"); ShareSize(limit, more, used) > size {
			t.Errorf("the size grows from %d to %d when the count grows from %d to %d", size, ShareSize(limit, more, used), counted, more)
		}
	})
}
