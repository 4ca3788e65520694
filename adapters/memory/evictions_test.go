package memory_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/adapters/memory"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/must"
)

// limiter counts hits of a limit in the same way as the rate limit service.
type limiter struct {
	store *memory.Counters
	clock *clocktest.Manual
}

func newLimiter(most int) limiter {
	clock := newManual()
	return limiter{memory.NewCounters(clock, memory.Config{MaxCounters: most}), clock}
}

// isOver counts one hit and reports whether the count is over the limit.
func (c limiter) isOver(t testing.TB, key string, limit uint64, window time.Duration) bool {
	t.Helper()
	now := c.clock.Now()
	h := counter.Hit{
		Key: fmt.Sprint(key, "|", now.Truncate(window).Unix()), Addend: 1, Limit: limit, Window: window,
		TTL: window + 300*time.Second, Left: now.Truncate(window).Add(window).Sub(now),
	}
	after, err := counter.Add(t.Context(), c.store, h)
	must.Succeed(t, err)
	return after > limit
}

// TestLongWindowsKeepShortOnes checks that a flood of new keys with a limit per day does not
// disable a limit per minute.
func TestLongWindowsKeepShortOnes(t *testing.T) {
	c := newLimiter(1000)
	for n := range 5000 {
		c.isOver(t, fmt.Sprint("flood", n), 10, 24*time.Hour)
	}
	for n := range 10 { // bob reaches his limit during the flood
		if got, want := c.isOver(t, "bob", 3, time.Minute), n >= 3; got != want {
			t.Fatalf("call %d is over: %v, want %v", n+1, got, want)
		}
		for i := range 200 {
			c.isOver(t, fmt.Sprint("flood", n, " ", i), 10, 24*time.Hour)
		}
		c.isOver(t, fmt.Sprint("alice", n), 3, time.Minute)
	}
	if kept := c.store.Len(); kept > 1000 {
		t.Errorf("%d counters are kept of at most 1000", kept)
	}
}

// TestEndedWindowsKeepLiveCounters checks that counters per second are removed after their second,
// although their time to live is longer.
func TestEndedWindowsKeepLiveCounters(t *testing.T) {
	c := newLimiter(200)
	exceedLimits(t, c, 50)
	for n := range 3000 {
		if n%100 == 0 {
			c.clock.Advance(time.Second)
		}
		c.isOver(t, fmt.Sprint("other", n), 1000, time.Second)
	}
	wantOverLimit(t, c, 50)
	if n := c.store.Evicted(); n != 0 {
		t.Errorf("%d live counters were removed, although counters of ended windows could be removed", n)
	}
}

// TestExceededLimitsAreRemovedLast checks that counters that are over their limit stay during a
// flood of new keys with the same window.
func TestExceededLimitsAreRemovedLast(t *testing.T) {
	c := newLimiter(200)
	exceedLimits(t, c, 50)
	for n := range 3000 {
		c.isOver(t, fmt.Sprint("other", n), 1000, time.Minute)
	}
	wantOverLimit(t, c, 50)
	if n := c.store.Evicted(); n != 50+3000-200 {
		t.Errorf("%d counters were removed, want %d", n, 50+3000-200)
	}
}

// exceedLimits advances to the start of a minute and makes each caller exceed its limit per minute.
func exceedLimits(t *testing.T, c limiter, callers int) {
	t.Helper()
	now := c.clock.Now()
	c.clock.Advance(now.Truncate(time.Minute).Add(time.Minute).Sub(now))
	for n := range 3 * callers {
		c.isOver(t, fmt.Sprint("exhausted", n%callers), 2, time.Minute)
	}
}

// wantOverLimit checks that all callers of exceedLimits are still over their limit.
func wantOverLimit(t *testing.T, c limiter, callers int) {
	t.Helper()
	over := 0
	for n := range callers {
		if c.isOver(t, fmt.Sprint("exhausted", n), 2, time.Minute) {
			over++
		}
	}
	if over != callers {
		t.Errorf("%d of %d callers are still over their limit, want all", over, callers)
	}
}

// TestFullStoreRemovesCountersWithinLimitFirst checks that counters over their limit keep their
// counts while the store contains a counter within its limit, and that the store never exceeds its
// size.
func TestFullStoreRemovesCountersWithinLimitFirst(t *testing.T) {
	windows := []time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour}
	rapid.Check(t, func(r *rapid.T) {
		const most = 20
		c := newLimiter(most)
		counts := map[string]uint64{} // of the keys that are over
		for range rapid.IntRange(1, 200).Draw(r, "steps") {
			window := rapid.SampledFrom(windows).Draw(r, "window")
			key := fmt.Sprint(rapid.IntRange(0, 30).Draw(r, "key"), window)
			limit := uint64(2)
			if len(counts) >= most/2 {
				limit = 1 << 40 // not all of them are over
			}
			if _, known := counts[key]; known {
				limit = 2
			}
			h := counter.Hit{Key: key, Addend: 1, Limit: limit, Window: window, TTL: time.Hour, Left: time.Hour}
			after, err := counter.Add(t.Context(), c.store, h)
			must.Succeed(r, err)
			if before, known := counts[key]; known && after != before+1 {
				r.Fatalf("%s was over its limit with %d hits and now has %d", key, before, after)
			}
			if after > limit {
				counts[key] = after
			}
			if kept := c.store.Len(); kept > most {
				r.Fatalf("%d counters are kept of at most %d", kept, most)
			}
		}
	})
}

// logBuffer is a log that a test can read during writes.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logBuffer) countWord(word string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), word)
}

func TestEvictionsAreReported(t *testing.T) {
	c, metrics, log, text := newLimiter(10), prometheus.NewRegistry(), logrus.New(), &logBuffer{}
	log.SetOutput(text)
	c.store.Measure("test", metrics, logrus.NewEntry(log))
	for minute := range 2 {
		for n := range 30 {
			c.isOver(t, fmt.Sprint("flood", n), 10, 24*time.Hour)
		}
		await.Until(t, "a warning in this minute", func() bool {
			return text.countWord("COUNTERS_IN_PROCESS_MAX") == minute+1
		})
		c.clock.Advance(time.Minute)
	}
	families, err := metrics.Gather()
	must.Succeed(t, err)
	got := map[string]float64{}
	for _, f := range families {
		got[f.GetName()] = f.GetMetric()[0].GetCounter().GetValue() + f.GetMetric()[0].GetGauge().GetValue()
	}
	if got["tollgate_counters_evicted_total"] != float64(c.store.Evicted()) || c.store.Evicted() == 0 ||
		got["tollgate_counters_in_process"] != 10 {
		t.Errorf("metrics are %v", got)
	}
}
