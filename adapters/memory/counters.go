// Package memory keeps counters, copies of sessions, and keys over their limit in the process. It
// is the whole store of an embedded deployment, the local cache of any other, and the fake store in
// tests of use cases. It shares nothing with other processes, and everything is lost when the
// process ends.
package memory

import (
	"context"
	"fmt"
	"hash/maphash"
	"math/bits"
	"time"

	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/counter"
)

const (
	maxShards = 256
	// leastPerShard is the minimum size of a shard, because small shards fill unevenly.
	leastPerShard = 1024
)

// Config contains the settings of the stores in the process.
type Config struct {
	// MaxCounters is the maximum number of counters, of up to 200 bytes each.
	MaxCounters int `env:"COUNTERS_IN_PROCESS_MAX" envDefault:"2000000" desc:"maximum number of counters in the process, for the rate limit service and, separately, for the API's own limits; when full, a new counter replaces one that is not over its limit, of the unit with the most counters"`
	// MaxSessions is the maximum number of copies of sessions; 0 means 100,000.
	MaxSessions int `env:"-"`
	// OverLimitBytes is the maximum memory for keys that are over their limit; 0 turns the cache
	// off.
	OverLimitBytes int64 `env:"LOCAL_CACHE_SIZE_IN_BYTES" envDefault:"0" desc:"bytes of memory for the local cache of keys that are over their limit, which are answered without the counter store until their window ends; 0 = no cache"`
}

// Validate returns an error that names the setting that is out of range.
func (c Config) Validate() error {
	if c.MaxCounters < 1 {
		return fmt.Errorf("COUNTERS_IN_PROCESS_MAX must be at least 1, not %d", c.MaxCounters)
	}
	if c.OverLimitBytes < 0 {
		return fmt.Errorf("LOCAL_CACHE_SIZE_IN_BYTES must not be negative, not %d", c.OverLimitBytes)
	}
	return nil
}

// Counters is a counter.Store in the process. Its counts are exact under concurrent calls (contract
// L-43). It is safe for concurrent use and need not be closed.
//
// Keys are stored as 128-bit hashes with random seeds, so a counter needs no allocation and costs
// the garbage collector nothing. A counter is kept until its window ends, without jitter, because
// no other process shares the store. Expired counters are removed a few at a time when new ones are
// created. When a shard is full, expired counters are removed first, then a counter within its
// limit, from the window class of the new counter or from the largest class. A counter over its
// limit is removed only if there are no others. Evicted returns how many live counters were
// removed. The maximum count is the greatest signed 64-bit number.
type Counters struct {
	clock   clock.Clock
	seeds   [2]maphash.Seed
	shards  []shard
	mask    uint64
	evicted evictions
}

// NewCounters returns an empty store for about cfg.MaxCounters counters.
func NewCounters(c clock.Clock, cfg Config) *Counters {
	limit := max(cfg.MaxCounters, 1)
	n := 1
	for n < maxShards && limit/(2*n) >= leastPerShard {
		n *= 2
	}
	m := &Counters{
		clock:  c,
		seeds:  [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
		shards: make([]shard, n),
		mask:   uint64(n - 1),
	}
	for i := range m.shards {
		m.shards[i].limit = (limit + n - 1) / n
		m.shards[i].evicted = &m.evicted
		m.shards[i].index = make(map[digest]int32)
	}
	return m
}

// Ping implements counter.Store. It always succeeds.
func (m *Counters) Ping(context.Context) error { return nil }

// Evicted returns how many live counters were removed because the store was full.
func (m *Counters) Evicted() uint64 { return m.evicted.count.Load() }

// Len returns the number of counters, including expired ones that are not removed yet.
func (m *Counters) Len() int {
	n := 0
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.Lock()
		n += s.usedCells
		s.mu.Unlock()
	}
	return n
}

func (m *Counters) hashKey(key string) digest {
	return digest{maphash.String(m.seeds[0], key), maphash.String(m.seeds[1], key)}
}

func (m *Counters) findShard(d digest) *shard { return &m.shards[d.lo&m.mask] }

// shardSet is a set of shards.
type shardSet [maxShards / 64]uint64

func (s *shardSet) add(n uint64) { s[n/64] |= 1 << (n % 64) }

// lockShards locks the shards in ascending order, so that two calls cannot deadlock.
func (m *Counters) lockShards(involved *shardSet) {
	for word, set := range involved {
		for ; set != 0; set &= set - 1 {
			m.shards[word*64+bits.TrailingZeros64(set)].mu.Lock()
		}
	}
}

func (m *Counters) unlockShards(involved *shardSet) {
	for word, set := range involved {
		for ; set != 0; set &= set - 1 {
			m.shards[word*64+bits.TrailingZeros64(set)].mu.Unlock()
		}
	}
}

// expiryTime returns the time at which a counter created now expires.
func expiryTime(now int64, h *counter.Hit) int64 {
	if h.Left > 0 {
		return now + int64(h.Left)
	}
	return now + int64(max(h.TTL, time.Second))
}
