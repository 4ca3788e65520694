package usage_test

import (
	"context"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/memory"
	"github.com/tollgate-dev/tollgate/core/catalogue/usage"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/counter"
)

func newCounter(now time.Time) (*usage.Counter, *clocktest.Manual) {
	clock := clocktest.NewManual(now)
	return usage.New(memory.NewCounters(clock, memory.Config{MaxCounters: 1000}), clock, "prefix:"), clock
}

func checkCount(
	t *testing.T, what string, count func(context.Context, netip.Addr) (uint64, error), a netip.Addr, want uint64,
) {
	t.Helper()
	if got, err := count(t.Context(), a); err != nil || got != want {
		t.Errorf("%s: %d, %v, want %d", what, got, err, want)
	}
}

func TestCountsByAddressAndDay(t *testing.T) {
	c, clock := newCounter(time.Date(2026, 11, 21, 23, 59, 59, 0, time.UTC))
	one, other := netip.MustParseAddr("203.0.113.9"), netip.MustParseAddr("2001:db8::1")
	checkCount(t, "before any", c.Today, one, 0)
	checkCount(t, "first", c.Count, one, 1)
	checkCount(t, "second", c.Count, one, 2)
	checkCount(t, "looking counts none", c.Today, one, 2)
	checkCount(t, "looking again", c.Today, one, 2)
	checkCount(t, "another address", c.Count, other, 1)
	clock.Advance(time.Second)
	checkCount(t, "the next day", c.Today, one, 0)
	checkCount(t, "first of the next day", c.Count, one, 1)
}

func TestCountsInParallel(t *testing.T) {
	c, _ := newCounter(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	a := netip.MustParseAddr("203.0.113.9")
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if _, err := c.Count(t.Context(), a); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	checkCount(t, "all", c.Today, a, 50)
}

// recorder keeps the hits that it is given and fails.
type recorder struct {
	counter.Store
	hits []counter.Hit
}

func (r *recorder) Count(_ context.Context, hits []counter.Hit, _ []counter.Result, m counter.Mode) error {
	r.hits = append(r.hits, hits...)
	return fault.New(fault.Unavailable, "away")
}

func TestKeysAndFailures(t *testing.T) {
	r := &recorder{}
	c := usage.New(r, clocktest.NewManual(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)), "prefix:")
	addresses := []netip.Addr{
		{}, netip.MustParseAddr("203.0.113.9"), netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2"),
	}
	for _, a := range addresses {
		if _, err := c.Count(t.Context(), a); !fault.Is(err, fault.Unavailable) {
			t.Errorf("%v: %v", a, err)
		}
	}
	keys := map[string]bool{}
	for _, h := range r.hits {
		keys[h.Key] = true
		if !strings.HasPrefix(h.Key, "prefix:") || len(h.Key) > counter.MaxKey || h.Window != 24*time.Hour ||
			h.TTL < h.Window || h.Addend != 1 {
			t.Errorf("hit %+v", h)
		}
		for _, b := range []byte(h.Key) {
			if b <= ' ' || b > '~' {
				t.Errorf("key %q", h.Key)
			}
		}
	}
	if len(keys) != len(addresses) {
		t.Errorf("keys %v", keys)
	}
}
