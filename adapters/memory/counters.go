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
	"strings"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
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

// warningInterval is the minimum time between two warnings about a full store.
const warningInterval = time.Minute

// evictions counts live counters that were removed because the store was full.
type evictions struct {
	count    atomic.Uint64
	warnedAt atomic.Int64 // nanoseconds since the epoch; 0 for never
	log      *logrus.Entry
}

// recordEviction counts an eviction, and logs a warning at most once per warningInterval. The
// caller holds a lock, so the log is written in another goroutine.
func (e *evictions) recordEviction(now int64) {
	count := e.count.Add(1)
	if e.log == nil {
		return
	}
	last := e.warnedAt.Load()
	if (last == 0 || now-last >= int64(warningInterval)) && e.warnedAt.CompareAndSwap(last, now) {
		go e.log.WithField("evicted", count).
			Warn("the process has its maximum number of counters, and removes some before their windows end; raise COUNTERS_IN_PROCESS_MAX")
	}
}

// Measure registers the metrics of the store under the given name. It also turns on a warning in
// the log, at most once a minute, while live counters are removed because the store is full. It
// must be called once, before the store is used.
func (m *Counters) Measure(store string, r prometheus.Registerer, log *logrus.Entry) {
	m.evicted.log = log.WithField("store", store)
	labels := prometheus.Labels{"store": store}
	r.MustRegister(
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name:        "tollgate_counters_evicted_total",
			Help:        "Counters that were removed before their windows ended because the store in the process was full.",
			ConstLabels: labels,
		}, func() float64 { return float64(m.Evicted()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name:        "tollgate_counters_in_process",
			Help:        "Counters in the process, with expired ones that were not removed yet.",
			ConstLabels: labels,
		}, func() float64 { return float64(m.Len()) }),
	)
}

// Ports are the dependencies of counters.
type Ports struct {
	Clock   clock.Clock
	Config  Config
	Metrics prometheus.Registerer
	Log     *logrus.Entry
}

// Open returns counters whose metrics and log lines have the name.
func (p Ports) Open(name string) *Counters {
	m := NewCounters(p.Clock, p.Config)
	m.Measure(name, p.Metrics, p.Log)
	return m
}

// OpenRateLimit returns the counters of rate limits in the process.
func OpenRateLimit(p Ports) *Counters { return p.Open("ratelimit") }

// entryBytes is the memory of a cache entry in addition to its key, as
// TestOverLimitStaysWithinItsBytes measures it.
const entryBytes = 200

// OverLimit implements [counter.OverLimitCache] within a maximum number of bytes. Reading takes no
// lock and does not allocate. When it is full, it removes rarely read entries; it removes expired
// entries when new ones are added. It need not be closed.
type OverLimit struct {
	verdicts *otter.Cache[string, verdict]
}

// verdict says that a counter is over a limit until a time.
type verdict struct {
	requests, burst uint32
	until           int64 // nanoseconds since the epoch
}

// NewOverLimit returns an empty cache of about cfg.OverLimitBytes bytes, at least one.
func NewOverLimit(c clock.Clock, cfg Config) (*OverLimit, error) {
	cache, err := otter.New(&otter.Options[string, verdict]{
		MaximumWeight:    uint64(max(cfg.OverLimitBytes, 1)),
		Weigher:          entryWeight,
		ExpiryCalculator: windowExpiry{c},
		Clock:            cacheClock{c},
		Executor:         func(task func()) { task() }, // no goroutine outlives a call
	})
	if err != nil {
		return nil, fmt.Errorf("create the cache of keys over their limit: %w", err)
	}
	return &OverLimit{cache}, nil
}

// OpenOverLimit is NewOverLimit. It returns nil if LOCAL_CACHE_SIZE_IN_BYTES is 0.
func OpenOverLimit(c clock.Clock, cfg Config) (counter.OverLimitCache, error) {
	if cfg.OverLimitBytes == 0 {
		return nil, nil
	}
	cache, err := NewOverLimit(c, cfg)
	if err != nil {
		return nil, fmt.Errorf("LOCAL_CACHE_SIZE_IN_BYTES: %w", err)
	}
	return cache, nil
}

// Over implements [counter.OverLimitCache].
func (o *OverLimit) Over(key string, limit ratelimit.Limit, now time.Time) (left time.Duration, over bool) {
	v, ok := o.verdicts.GetIfPresent(key)
	left = time.Duration(v.until - now.UnixNano())
	return left, ok && limit.RequestsPerUnit <= v.requests && limit.Burst <= v.burst && left > 0
}

// Note implements [counter.OverLimitCache].
func (o *OverLimit) Note(key string, limit ratelimit.Limit, until time.Time) {
	o.verdicts.Set(strings.Clone(key), verdict{limit.RequestsPerUnit, limit.Burst, until.UnixNano()})
}

// Forget implements [counter.OverLimitCache].
func (o *OverLimit) Forget(key string) { o.verdicts.Invalidate(key) }

func entryWeight(key string, _ verdict) uint32 { return uint32(len(key)) + entryBytes } //nolint:gosec // keys are short

// windowExpiry expires an entry at the end of its window. Reading does not prolong it.
type windowExpiry struct{ clock clock.Clock }

func (u windowExpiry) ExpireAfterCreate(e otter.Entry[string, verdict]) time.Duration {
	return max(time.Duration(e.Value.until-u.clock.Now().UnixNano()), 1)
}

func (u windowExpiry) ExpireAfterUpdate(e otter.Entry[string, verdict], _ verdict) time.Duration {
	return u.ExpireAfterCreate(e)
}

func (u windowExpiry) ExpireAfterRead(e otter.Entry[string, verdict]) time.Duration {
	return e.ExpiresAfter()
}

// cacheClock adapts a clock.Clock to the library. It never ticks, because expired entries are
// removed when others are added, so no goroutine is needed.
type cacheClock struct{ clock clock.Clock }

// NowNano returns nanoseconds since the epoch.
func (t cacheClock) NowNano() int64 { return t.clock.Now().UnixNano() }

// Tick returns nil, a channel that never fires.
func (t cacheClock) Tick(time.Duration) <-chan time.Time { return nil }
