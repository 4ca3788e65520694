package memory

import (
	"fmt"
	"strings"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/tollgate-dev/tollgate/ports/clock"
)

// entryBytes is what an entry of the library's costs besides its key, as
// TestOverLimitStaysWithinItsBytes measures it.
const entryBytes = 200

// OverLimit remembers counters that are over their limit ([counter.OverLimitCache]), in a
// bounded number of bytes. Reading takes no lock and allocates nothing. When it
// is full, what is rarely asked for goes; what has expired goes as new verdicts
// are noted. It needs no closing.
type OverLimit struct {
	verdicts *otter.Cache[string, verdict]
}

// verdict reports that a counter is over a limit until a time.
type verdict struct {
	limit uint32
	until int64 // nanoseconds since the epoch
}

// NewOverLimit returns an empty cache of about cfg.OverLimitBytes bytes, which
// are at least one.
func NewOverLimit(c clock.Clock, cfg Config) (*OverLimit, error) {
	cache, err := otter.New(&otter.Options[string, verdict]{
		MaximumWeight:    uint64(max(cfg.OverLimitBytes, 1)),
		Weigher:          weight,
		ExpiryCalculator: untilEnd{c},
		Clock:            ticking{c},
		Executor:         func(task func()) { task() }, // no goroutine outlives a call
	})
	if err != nil {
		return nil, fmt.Errorf("make the cache: %w", err)
	}
	return &OverLimit{cache}, nil
}

// Over implements [counter.OverLimitCache].
func (o *OverLimit) Over(key string, limit uint32, now time.Time) bool {
	v, ok := o.verdicts.GetIfPresent(key)
	return ok && limit <= v.limit && now.UnixNano() < v.until
}

// Note implements [counter.OverLimitCache].
func (o *OverLimit) Note(key string, limit uint32, until time.Time) {
	o.verdicts.Set(strings.Clone(key), verdict{limit, until.UnixNano()})
}

// Forget implements [counter.OverLimitCache].
func (o *OverLimit) Forget(key string) { o.verdicts.Invalidate(key) }

func weight(key string, _ verdict) uint32 { return uint32(len(key)) + entryBytes } //nolint:gosec // keys are short

// untilEnd lets a verdict expire with its window, which reading does not
// prolong.
type untilEnd struct{ clock clock.Clock }

func (u untilEnd) ExpireAfterCreate(e otter.Entry[string, verdict]) time.Duration {
	return max(time.Duration(e.Value.until-u.clock.Now().UnixNano()), 1)
}

func (u untilEnd) ExpireAfterUpdate(e otter.Entry[string, verdict], _ verdict) time.Duration {
	return u.ExpireAfterCreate(e)
}

func (u untilEnd) ExpireAfterRead(e otter.Entry[string, verdict]) time.Duration {
	return e.ExpiresAfter()
}

// ticking is our clock in the library's form. It never ticks: expired verdicts
// go when others are noted, so that no goroutine is needed.
type ticking struct{ clock clock.Clock }

// NowNano returns nanoseconds since the epoch.
func (t ticking) NowNano() int64 { return t.clock.Now().UnixNano() }

// Tick returns no channel.
func (t ticking) Tick(time.Duration) <-chan time.Time { return nil }
