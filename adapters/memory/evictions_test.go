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
)

// calls counts hits of a limit as decisions do.
type calls struct {
	store *memory.Counters
	clock *clocktest.Manual
}

func newCalls(most int) calls {
	clock := newManual()
	return calls{memory.NewCounters(clock, memory.Config{MaxCounters: most}), clock}
}

// over counts one hit and reports whether it is over the limit.
func (c calls) over(t testing.TB, key string, limit uint64, window time.Duration) bool {
	t.Helper()
	now := c.clock.Now()
	h := counter.Hit{
		Key: fmt.Sprint(key, "|", now.Truncate(window).Unix()), Addend: 1, Limit: limit, Window: window,
		TTL: window + 300*time.Second, Left: now.Truncate(window).Add(window).Sub(now),
	}
	after := make([]uint64, 1)
	if err := c.store.Add(t.Context(), []counter.Hit{h}, after); err != nil {
		t.Fatal(err)
	}
	return after[0] > limit
}

// TestLongUnitsDoNotPushOutShortOnes: a caller that brings new values of a limit per day must not
// switch off a limit per minute.
func TestLongUnitsDoNotPushOutShortOnes(t *testing.T) {
	c := newCalls(1000)
	for n := range 5000 {
		c.over(t, fmt.Sprint("flood", n), 10, 24*time.Hour)
	}
	for n := range 10 { // bob reaches his limit during the flood
		if got, want := c.over(t, "bob", 3, time.Minute), n >= 3; got != want {
			t.Fatalf("call %d is over: %v, want %v", n+1, got, want)
		}
		for i := range 200 {
			c.over(t, fmt.Sprint("flood", n, " ", i), 10, 24*time.Hour)
		}
		c.over(t, fmt.Sprint("alice", n), 3, time.Minute)
	}
	if kept := c.store.Len(); kept > 1000 {
		t.Errorf("%d counters are kept of at most 1000", kept)
	}
}

// TestDeadCountersDoNotPushOutLiveOnes checks that counters per second are removed after their
// second, regardless of the jitter of other stores.
func TestDeadCountersDoNotPushOutLiveOnes(t *testing.T) {
	c := newCalls(200)
	exhaust(t, c, 50)
	for n := range 3000 {
		if n%100 == 0 {
			c.clock.Advance(time.Second)
		}
		c.over(t, fmt.Sprint("other", n), 1000, time.Second)
	}
	stillOver(t, c, 50)
	if n := c.store.Evicted(); n != 0 {
		t.Errorf("%d live counters were forgotten although dead ones were there", n)
	}
}

// TestEnforcedLimitsAreForgottenLast: limits that are being enforced outlive a flood of the same
// unit.
func TestEnforcedLimitsAreForgottenLast(t *testing.T) {
	c := newCalls(200)
	exhaust(t, c, 50)
	for n := range 3000 {
		c.over(t, fmt.Sprint("other", n), 1000, time.Minute)
	}
	stillOver(t, c, 50)
	if n := c.store.Evicted(); n != 50+3000-200 {
		t.Errorf("%d counters were forgotten", n)
	}
}

// exhaust brings so many callers over a limit per minute, at the beginning of one.
func exhaust(t *testing.T, c calls, callers int) {
	t.Helper()
	now := c.clock.Now()
	c.clock.Advance(now.Truncate(time.Minute).Add(time.Minute).Sub(now))
	for n := range 3 * callers {
		c.over(t, fmt.Sprint("exhausted", n%callers), 2, time.Minute)
	}
}

func stillOver(t *testing.T, c calls, callers int) {
	t.Helper()
	over := 0
	for n := range callers {
		if c.over(t, fmt.Sprint("exhausted", n), 2, time.Minute) {
			over++
		}
	}
	if over != callers {
		t.Errorf("%d of %d exhausted limits are still over", over, callers)
	}
}

// TestFullStoreForgetsIdleCountersFirst compares a full store with what may be forgotten: while any
// counter is within its limit, all that are over keep their counts; and never are more kept than
// may be.
func TestFullStoreForgetsIdleCountersFirst(t *testing.T) {
	windows := []time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour}
	rapid.Check(t, func(r *rapid.T) {
		const most = 20
		c := newCalls(most)
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
			after := make([]uint64, 1)
			if err := c.store.Add(t.Context(), []counter.Hit{h}, after); err != nil {
				r.Fatal(err)
			}
			if before, known := counts[key]; known && after[0] != before+1 {
				r.Fatalf("%s was over with %d hits and has %d now", key, before, after[0])
			}
			if after[0] > limit {
				counts[key] = after[0]
			}
			if kept := c.store.Len(); kept > most {
				r.Fatalf("%d counters are kept of at most %d", kept, most)
			}
		}
	})
}

// lines is a log that a test reads while it is written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) count(word string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), word)
}

func TestEvictionsAreReported(t *testing.T) {
	c, metrics, log, text := newCalls(10), prometheus.NewRegistry(), logrus.New(), &lines{}
	log.SetOutput(text)
	c.store.Measure("test", metrics, logrus.NewEntry(log))
	for minute := range 2 {
		for n := range 30 {
			c.over(t, fmt.Sprint("flood", n), 10, 24*time.Hour)
		}
		for end := time.Now().Add(20 * time.Second); text.count("COUNTERS_IN_PROCESS_MAX") != minute+1; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("warned %d times, want %d", text.count("COUNTERS_IN_PROCESS_MAX"), minute+1)
			}
		}
		c.clock.Advance(time.Minute)
	}
	families, err := metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		got[f.GetName()] = f.GetMetric()[0].GetCounter().GetValue() + f.GetMetric()[0].GetGauge().GetValue()
	}
	if got["tollgate_counters_evicted_total"] != float64(c.store.Evicted()) || c.store.Evicted() == 0 || got["tollgate_counters_in_process"] != 10 {
		t.Errorf("metrics are %v", got)
	}
}
