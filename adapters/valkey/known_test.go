package valkey

import (
	"fmt"
	"hash/maphash"
	"strconv"
	"testing"
)

// TestKnownKeysAreNotConfused checks that only keys that were remembered are known. Of so many
// keys, two have the same hash in one of thousands of runs.
func TestKnownKeysAreNotConfused(t *testing.T) {
	s, confused := newKnownKeys(), 0
	for i := range 200_000 {
		key := strconv.Itoa(i)
		if s.contains(key) {
			confused++
		}
		s.remember(key)
		if !s.contains(key) {
			t.Fatalf("%q was remembered a moment ago", key)
		}
	}
	if confused > 1 {
		t.Errorf("%d keys are known that were never remembered", confused)
	}
}

// TestManyKeysAreKnown checks that the keys that are counted stay known while there are many, also
// after those of earlier windows, and that remembering a key twice takes no more room. It looks at
// a part of the sets.
func TestManyKeysAreKnown(t *testing.T) {
	const keys, windows, part = 300_000, 8, 16
	s := newKnownKeys()
	var latest []string
	for window := range windows {
		latest = latest[:0]
		suffix := "/" + strconv.Itoa(window)
		for i := range keys {
			if key := strconv.Itoa(i) + suffix; maphash.String(s.seed, key)%knownSets < knownSets/part {
				latest = append(latest, key)
				s.remember(key)
			}
		}
		for _, key := range latest {
			s.remember(key)
		}
	}
	forgotten := 0
	for _, key := range latest {
		if !s.contains(key) {
			forgotten++
		}
	}
	if forgotten > len(latest)/100 {
		t.Errorf("%d of %d keys are forgotten, want at most 1 in 100", forgotten, len(latest))
	}
}

// BenchmarkKnownKeys looks up keys in turn, and remembers those that are not known, as counting
// does. It reports how many were not.
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
