package valkey

import (
	"hash/maphash"
	"sync/atomic"
)

// seenSlots is how many keys the filter remembers at most: 1 MiB.
const seenSlots = 1 << 17

// seen remembers keys that this process has made or found with an expiry. It forgets at its own will, which costs one
// command more, and never takes one key for another but by a collision of 64-bit hashes, which the check of the answer
// repairs.
type seen struct {
	seed  maphash.Seed
	slots [seenSlots]atomic.Uint64
}

func newSeen() *seen { return &seen{seed: maphash.MakeSeed()} }

func (s *seen) has(key string) bool {
	h := maphash.String(s.seed, key)
	return s.slots[h%seenSlots].Load() == h
}

func (s *seen) note(key string) {
	h := maphash.String(s.seed, key)
	s.slots[h%seenSlots].Store(h)
}
