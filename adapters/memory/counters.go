// Package memory keeps counters, session copies and verdicts over limit in the process: the whole store of an embedded
// deployment, the local cache of any other, and the fake of use case tests. It shares nothing with other processes and
// forgets everything when the process ends.
package memory

import (
	"context"
	"fmt"
	"hash/maphash"
	"math/bits"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/counter"
)

const (
	maxShards = 256
	// leastPerShard keeps small stores from being cut into shards that overflow by the luck of the hash.
	leastPerShard = 1024
)

// Config is the settings of the stores in the process.
type Config struct {
	// MaxCounters bounds the counters, and so the memory: up to 200 bytes each.
	MaxCounters int `env:"COUNTERS_IN_PROCESS_MAX" envDefault:"2000000" desc:"maximum number of counters in the process, for the rate limit service and, separately, for the API's own limits; when full, a new counter replaces one that is not over its limit, of the unit with the most counters"`
	// MaxSessions bounds the session copies.
	MaxSessions int `readBy:"api" env:"SESSION_CACHE_MAX" envDefault:"100000" desc:"maximum number of session copies in the process"`
	// OverLimitBytes bounds what is remembered of counters that are over their limit; 0 remembers nothing.
	OverLimitBytes int64 `env:"LOCAL_CACHE_SIZE_IN_BYTES" envDefault:"0" desc:"bytes of memory for the local cache of keys that are over their limit, which are answered without the counter store until their window ends; 0 = no cache"`
}

// Validate tells which setting is out of its range.
func (c Config) Validate() error {
	if c.MaxCounters < 1 {
		return fmt.Errorf("COUNTERS_IN_PROCESS_MAX must be at least 1, not %d", c.MaxCounters)
	}
	if c.MaxSessions < 1 {
		return fmt.Errorf("SESSION_CACHE_MAX must be at least 1, not %d", c.MaxSessions)
	}
	if c.OverLimitBytes < 0 {
		return fmt.Errorf("LOCAL_CACHE_SIZE_IN_BYTES must not be negative, not %d", c.OverLimitBytes)
	}
	return nil
}

// Counters counts in the process, exactly under concurrent calls (contract L-43). It is safe for
// concurrent use and needs no closing.
//
// Keys are kept as 128-bit hashes with seeds of this process, so that a counter costs no allocation and the garbage
// collector nothing. A counter is kept until its window ends, without any jitter: no other process shares the store.
// Expired counters are taken out a few at a time as new ones are made. When a shard is full, expired counters go first,
// then one within its limit, of the new counter's own class of windows or of the class that takes most room, and one that
// is over its limit only when there are no others. Evicted returns how many live counters went. Counts end at the greatest
// 64-bit signed number.
type Counters struct {
	clock   clock.Clock
	seeds   [2]maphash.Seed
	shards  []shard
	mask    uint64
	evicted evictions
}

// NewCounters returns an empty store that keeps about cfg.MaxCounters counters at most.
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

// Add implements ports/counter.
func (m *Counters) Add(ctx context.Context, hits []counter.Hit, after []uint64) error {
	if err := check(ctx, hits, after); err != nil {
		return err
	}
	now := m.clock.Now().UnixNano()
	for i := range hits {
		d := m.digest(hits[i].Key)
		s := m.shardOf(d)
		s.mu.Lock()
		after[i] = s.add(d, &hits[i], now)
		s.mu.Unlock()
	}
	return nil
}

// AddUnlessOver implements ports/counter. Hits of one key stand and fall together: when one of them would bring the
// counter over its limit, all of them are counted.
func (m *Counters) AddUnlessOver(ctx context.Context, hits []counter.Hit, after []uint64) error {
	if err := check(ctx, hits, after); err != nil {
		return err
	}
	digests := make([]digest, len(hits))
	var involved [maxShards / 64]uint64
	for i := range hits {
		digests[i] = m.digest(hits[i].Key)
		n := digests[i].lo & m.mask
		involved[n/64] |= 1 << (n % 64)
	}
	now := m.clock.Now().UnixNano()
	m.lock(&involved)
	defer m.unlock(&involved)
	over := m.over(hits, digests, now)
	for i := range hits {
		s := m.shardOf(digests[i])
		if len(over) == 0 || over[digests[i]] {
			after[i] = s.add(digests[i], &hits[i], now)
		} else {
			after[i] = s.count(digests[i], now)
		}
	}
	return nil
}

// over returns the counters that the batch would bring over a limit. The shards of all hits are locked.
func (m *Counters) over(hits []counter.Hit, digests []digest, now int64) map[digest]bool {
	var over map[digest]bool
	var running map[digest]uint64 // counts after earlier hits; a single hit needs none
	if len(hits) > 1 {
		running = make(map[digest]uint64, len(hits))
	}
	for i := range hits {
		count, earlier := running[digests[i]]
		if !earlier {
			count = m.shardOf(digests[i]).count(digests[i], now)
		}
		count = sum(count, hits[i].Addend)
		if running != nil {
			running[digests[i]] = count
		}
		if count > hits[i].Limit {
			if over == nil {
				over = make(map[digest]bool)
			}
			over[digests[i]] = true
		}
	}
	return over
}

// Ping implements ports/counter; a store in the process is always there.
func (m *Counters) Ping(context.Context) error { return nil }

// Evicted returns how many live counters were forgotten because the store was full.
func (m *Counters) Evicted() uint64 { return m.evicted.count.Load() }

// Len returns how many counters are kept, expired ones included that were not taken out yet.
func (m *Counters) Len() int {
	n := 0
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.Lock()
		n += s.kept
		s.mu.Unlock()
	}
	return n
}

func (m *Counters) digest(key string) digest {
	return digest{maphash.String(m.seeds[0], key), maphash.String(m.seeds[1], key)}
}

func (m *Counters) shardOf(d digest) *shard { return &m.shards[d.lo&m.mask] }

// lock takes the locks in the order of the shards, so that two calls never wait for each other.
func (m *Counters) lock(involved *[maxShards / 64]uint64) {
	for word, set := range involved {
		for ; set != 0; set &= set - 1 {
			m.shards[word*64+bits.TrailingZeros64(set)].mu.Lock()
		}
	}
}

func (m *Counters) unlock(involved *[maxShards / 64]uint64) {
	for word, set := range involved {
		for ; set != 0; set &= set - 1 {
			m.shards[word*64+bits.TrailingZeros64(set)].mu.Unlock()
		}
	}
}

func check(ctx context.Context, hits []counter.Hit, after []uint64) error {
	if len(hits) != len(after) {
		return fault.Newf(fault.Internal, "", "%d hits with room for %d counts", len(hits), len(after))
	}
	if err := ctx.Err(); err != nil {
		return fault.Wrap(fault.Unavailable, "", "counting was canceled", err)
	}
	return nil
}

// expiry returns the moment from which a counter made now is gone.
func expiry(now int64, h *counter.Hit) int64 {
	if h.Left > 0 {
		return now + int64(h.Left)
	}
	return now + int64(max(h.TTL, time.Second))
}
