package valkey

import (
	"hash/maphash"
	"sync/atomic"
)

const (
	// knownSets is the number of sets of remembered keys, and setSize the number of keys in one.
	// They take 8 MiB, and have room for half a million live keys without loss.
	knownSets = 1 << 18
	setSize   = 8
)

// knownKeys remembers keys that this process created, or found with an expiry. A new key replaces
// the one of its set that was remembered first, usually a key of an ended window; if that one is
// still counted, it costs one more command. Two keys with the same hash of 50 bits are confused;
// storeCounts repairs the expiry in that case.
type knownKeys struct {
	seed maphash.Seed
	sets [knownSets]knownSet
}

// knownSet are the parts of hashes of its keys, the latest first; otherwise 0.
type knownSet [setSize]atomic.Uint32

func newKnownKeys() *knownKeys { return &knownKeys{seed: maphash.MakeSeed()} }

// find returns the set of a key, and what it has of the hash.
func (s *knownKeys) find(key string) (set *knownSet, tag uint32) {
	h := maphash.String(s.seed, key)
	return &s.sets[h%knownSets], uint32(h>>32) | 1 //nolint:gosec // the upper half
}

func (s *knownKeys) contains(key string) bool {
	set, tag := s.find(key)
	for i := range set {
		if set[i].Load() == tag {
			return true
		}
	}
	return false
}

// remember adds a key to its set. If two goroutines change a set at the same time, it may lose a
// key.
func (s *knownKeys) remember(key string) {
	set, tag := s.find(key)
	for i := range set {
		before := set[i].Swap(tag)
		if before == 0 || before == tag && i == 0 {
			return
		}
		tag = before
	}
}
