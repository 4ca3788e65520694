package valkey

import (
	"fmt"
	"testing"
)

// TestKnownKeysAreNotConfused checks that only keys that were remembered are known.
func TestKnownKeysAreNotConfused(t *testing.T) {
	s := newKnownKeys()
	for i := range 1_000_000 {
		key := fmt.Sprint(i)
		if s.contains(key) {
			t.Fatalf("%q was never remembered", key)
		}
		s.remember(key)
		if !s.contains(key) {
			t.Fatalf("%q was remembered a moment ago", key)
		}
	}
}

// TestManyKeysAreKnown checks that the keys that are counted stay known while there are many, also after
// those of earlier windows, and that remembering a key twice takes no more room.
func TestManyKeysAreKnown(t *testing.T) {
	const keys = 300_000
	s := newKnownKeys()
	for window := range 8 {
		names := make([]string, keys)
		for i := range names {
			names[i] = fmt.Sprint(i, "/", window)
			s.remember(names[i])
		}
		for _, name := range names {
			s.remember(name)
		}
	}
	forgotten := 0
	for i := range keys {
		if !s.contains(fmt.Sprint(i, "/", 7)) {
			forgotten++
		}
	}
	if forgotten > keys/100 {
		t.Errorf("%d of %d keys are forgotten, want at most 1 in 100", forgotten, keys)
	}
}

// BenchmarkKnownKeys looks up keys in turn, and remembers those that are not known, as counting does.
// It reports how many were not.
func BenchmarkKnownKeys(b *testing.B) {
	for _, live := range []int{1_000, 300_000, 1_000_000} {
		b.Run(fmt.Sprint(live), func(b *testing.B) {
			keys := make([]string, live)
			for i := range keys {
				keys[i] = fmt.Sprint("a key of usual length ", i)
			}
			s, unknown, n := newKnownKeys(), 0, 0
			for _, key := range keys {
				s.remember(key)
			}
			for b.Loop() {
				n++
				if key := keys[n%live]; !s.contains(key) {
					unknown++
					s.remember(key)
				}
			}
			b.ReportMetric(100*float64(unknown)/float64(n), "%unknown")
		})
	}
}
