package inprocess_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/inprocess"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/ports/throttle"
	"github.com/tollgate-dev/tollgate/ports/throttle/throttletest"
	"github.com/tollgate-dev/tollgate/test/must"
)

// fakeStore counts in a map and keeps all hits. If err is set, Add and Ping return it.
type fakeStore struct {
	counter.Store
	mu     sync.Mutex
	counts map[string]int64
	hits   []counter.Hit
	err    error
}

func (s *fakeStore) Count(_ context.Context, hits []counter.Hit, results []counter.Result, _ counter.Mode) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hits = append(s.hits, hits...)
	if s.err != nil {
		return s.err
	}
	if s.counts == nil {
		s.counts = make(map[string]int64)
	}
	for i, h := range hits {
		s.counts[h.Key] = max(s.counts[h.Key]+h.Addend, 0)
		results[i].Count = uint64(s.counts[h.Key])
	}
	return nil
}

func (s *fakeStore) Ping(context.Context) error { return s.err }

func newThrottle(t *testing.T, store counter.Store) (*inprocess.Throttle, *clocktest.Manual) {
	t.Helper()
	c := clocktest.NewManual(time.Date(2030, time.May, 6, 7, 8, 9, 10, time.UTC))
	th, err := inprocess.NewThrottle(inprocess.ThrottleConfig{Prefix: "p_", Limits: map[throttle.Scope]inprocess.Limit{
		throttle.AuthAddress: {Requests: 5, Window: 15 * time.Minute},
		throttle.StepUpUser:  {Requests: 5, Window: time.Hour},
		throttle.APIAddress:  {},
	}}, store, c)
	must.Succeed(t, err)
	return th, c
}

func TestThrottleContract(t *testing.T) {
	throttletest.Run(t, func(t *testing.T) throttletest.Subject {
		th, c := newThrottle(t, new(fakeStore))
		return throttletest.Subject{
			Throttle: th, Limited: throttle.AuthAddress, Other: throttle.StepUpUser, Unlimited: throttle.APIAddress,
			Limit: 5, Window: 15 * time.Minute, Now: c.Now, Advance: c.Advance,
		}
	})
}

func TestThrottleHits(t *testing.T) {
	store := new(fakeStore)
	th, c := newThrottle(t, store)
	v, err := th.Try(t.Context(), throttle.AuthAddress, "192.0.2.1")
	must.Succeed(t, err)
	c.Advance(time.Hour)
	must.Succeed(t, th.GiveBack(t.Context(), throttle.AuthAddress, "192.0.2.1", v))
	if _, err := th.Try(t.Context(), throttle.APIAddress, "192.0.2.1"); err != nil {
		t.Fatal(err)
	}
	if len(store.hits) != 2 {
		t.Fatalf("%d hits, want a try and its return, and no hit for the scope without a limit: %+v",
			len(store.hits), store.hits)
	}
	try, back := store.hits[0], store.hits[1]
	if try.Addend != 1 || back.Addend != -1 || try.Key != back.Key {
		t.Errorf("a try %+v and its return %+v", try, back)
	}
	if try.Limit != 5 || try.Window != 15*time.Minute || try.TTL < try.Window {
		t.Errorf("hit %+v", try)
	}
}

func TestThrottleKeysFitEveryStore(t *testing.T) {
	store := new(fakeStore)
	th, _ := newThrottle(t, store)
	for _, key := range []string{"", "a b", "ü", string(make([]byte, 5000))} {
		if _, err := th.Try(t.Context(), throttle.StepUpUser, key); err != nil {
			t.Fatal(err)
		}
	}
	seen := make(map[string]bool)
	for _, h := range store.hits {
		if len(h.Key) < 1 || len(h.Key) > counter.MaxKey || seen[h.Key] || h.Key[:2] != "p_" {
			t.Errorf("key %q", h.Key)
		}
		for _, b := range []byte(h.Key) {
			if b <= ' ' || b > '~' {
				t.Errorf("key %q has byte %#x", h.Key, b)
			}
		}
		seen[h.Key] = true
	}
}

func TestThrottleWithUnavailableStore(t *testing.T) {
	th, _ := newThrottle(t, &fakeStore{err: fault.New(fault.Unavailable, "unreachable")})
	v, err := th.Try(t.Context(), throttle.AuthAddress, "k")
	if !fault.Is(err, fault.Unavailable) || v.Allowed || v.Limit == 0 || v.Remaining != v.Limit || v.ResetAt.IsZero() {
		t.Errorf("Try: %+v, %v, want fault.Unavailable and the whole limit remaining", v, err)
	}
	if err := th.GiveBack(t.Context(), throttle.AuthAddress, "k", v); !fault.Is(err, fault.Unavailable) {
		t.Errorf("GiveBack: %v, want fault.Unavailable", err)
	}
	if v, err := th.Try(t.Context(), throttle.APIAddress, "k"); err != nil || !v.Allowed {
		t.Errorf("without a limit: %+v, %v", v, err)
	}
}

func TestThrottleRefusesBadSettings(t *testing.T) {
	for name, cfg := range map[string]inprocess.ThrottleConfig{
		"a window with a fraction of a second": {
			Limits: map[throttle.Scope]inprocess.Limit{"s": {Requests: 1, Window: 1500 * time.Millisecond}},
		},
		"a limit without a window": {Limits: map[throttle.Scope]inprocess.Limit{"s": {Requests: 1}}},
		"a prefix with a space":    {Prefix: "a b"},
	} {
		if _, err := inprocess.NewThrottle(cfg, new(fakeStore), clocktest.NewManual(time.Time{})); err == nil {
			t.Errorf("%s: NewThrottle returned no error", name)
		}
	}
}
