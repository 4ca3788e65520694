package inprocess_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/inprocess"
	"github.com/tollgate-dev/tollgate/adapters/memory"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/ports/singleuse/singleusetest"
	"github.com/tollgate-dev/tollgate/test/must"
)

func newSingleUse(t *testing.T, prefix string, store counter.Store) *inprocess.SingleUse {
	t.Helper()
	s, err := inprocess.NewSingleUse(prefix, store)
	must.Succeed(t, err)
	return s
}

func TestSingleUseContract(t *testing.T) {
	singleusetest.Run(t, func(t *testing.T) singleusetest.Subject {
		c := clocktest.NewManual(noon)
		return singleusetest.Subject{
			Store:   newSingleUse(t, "p_", memory.NewCounters(c, memory.Config{MaxCounters: 1000})),
			Advance: c.Advance,
		}
	})
	singleusetest.Unavailable(t, newSingleUse(t, "p_", &fakeStore{err: fault.New(fault.Unavailable, "unreachable")}))
}

// TestFullStoreKeepsClaims fills the counter store of the process. It must remove counters of
// limits and not the claim, although the claim ends first.
func TestFullStoreKeepsClaims(t *testing.T) {
	counters := memory.NewCounters(clocktest.NewManual(noon), memory.Config{MaxCounters: 8})
	s := newSingleUse(t, "", counters)
	if first, err := s.Claim(t.Context(), "key", time.Minute); err != nil || !first {
		t.Fatalf("Claim = %v, %v", first, err)
	}
	for n := range 100 {
		h := counter.Hit{Key: strings.Repeat("k", n+1), Addend: 1, Limit: 5, Window: time.Minute, TTL: time.Hour}
		must.Succeed(t, counters.Count(t.Context(), []counter.Hit{h}, make([]counter.Result, 1), counter.Each))
	}
	if counters.Evicted() == 0 {
		t.Error("the store is not full")
	}
	if first, err := s.Claim(t.Context(), "key", time.Minute); err != nil || first {
		t.Errorf("Claim again = %v, %v, want that it is not the first", first, err)
	}
}

func TestSingleUseHits(t *testing.T) {
	for ttl, kept := range map[time.Duration]time.Duration{
		time.Millisecond:                 time.Second,
		time.Second:                      time.Second,
		time.Second + 1:                  2 * time.Second,
		24*time.Hour - time.Nanosecond:   24 * time.Hour,
		30 * time.Second:                 30 * time.Second,
		30*time.Second + time.Nanosecond: 31 * time.Second,
	} {
		store := new(fakeStore)
		if _, err := newSingleUse(t, "", store).Claim(t.Context(), "key", ttl); err != nil {
			t.Fatal(err)
		}
		h := store.hits[0]
		if h.Addend != 1 || h.TTL != kept || h.Left != max(ttl, time.Second) || h.Window == time.Second {
			t.Errorf("the hit of a claim for %v is %+v, want one that is kept for %v", ttl, h, kept)
		}
	}
}

// TestSingleUseKeys checks that every store accepts the keys, and that a key of another deployment
// or of a limit is another key.
func TestSingleUseKeys(t *testing.T) {
	store := new(fakeStore)
	long := strings.Repeat("p", ratelimit.MaxPrefix)
	for _, prefix := range []string{"", "p_", "p_once:", long} {
		for _, key := range []string{"", "a", "a b", "\x00", strings.Repeat("x", 1000)} {
			if first, err := newSingleUse(t, prefix, store).Claim(t.Context(), key, time.Hour); err != nil || !first {
				t.Errorf("Claim of %.20q with the prefix %q = %v, %v", key, prefix, first, err)
			}
		}
	}
	for _, h := range store.hits {
		if !ratelimit.ValidPrefix(h.Key[:len(h.Key)/2]) || !ratelimit.ValidPrefix(h.Key[len(h.Key)/2:]) ||
			len(h.Key) > counter.MaxKey {
			t.Errorf("not every store accepts the key %q", h.Key)
		}
		if rest := strings.TrimPrefix(strings.TrimPrefix(h.Key, long), "p_"); !strings.HasPrefix(rest, "once:") {
			t.Errorf("the key %q could be the key of a limit", h.Key)
		}
	}
}

func TestSingleUseRefusesBadPrefix(t *testing.T) {
	for _, prefix := range []string{"a b", "ü", strings.Repeat("p", ratelimit.MaxPrefix+1)} {
		if _, err := inprocess.NewSingleUse(prefix, new(fakeStore)); err == nil {
			t.Errorf("NewSingleUse(%q) returned no error", prefix)
		}
	}
}
