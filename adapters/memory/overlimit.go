package memory

import (
	"fmt"
	"strings"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/counter"
)

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
