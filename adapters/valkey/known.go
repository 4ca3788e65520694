package valkey

import (
	"hash/maphash"
	"sync/atomic"
)

// knownKeySlots is the maximum number of remembered keys. They take 1 MiB.
const knownKeySlots = 1 << 17

// knownKeys remembers keys that this process created, or found with an expiry. A new key may
// replace another one, which then costs one more command. Two keys with the same 64-bit hash are
// confused; storeCounts repairs the expiry in that case.
type knownKeys struct {
	seed  maphash.Seed
	slots [knownKeySlots]atomic.Uint64
}

func newKnownKeys() *knownKeys { return &knownKeys{seed: maphash.MakeSeed()} }

func (s *knownKeys) contains(key string) bool {
	h := maphash.String(s.seed, key)
	return s.slots[h%knownKeySlots].Load() == h
}

func (s *knownKeys) remember(key string) {
	h := maphash.String(s.seed, key)
	s.slots[h%knownKeySlots].Store(h)
}
