package inprocess_test

import (
	"context"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/inprocess"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/throttle"
	"github.com/tollgate-dev/tollgate/ports/throttle/throttletest"
)

// newFallback returns a throttle with two stores, and functions that read and advance their clock.
func newFallback(
	t *testing.T, shared, local *fakeStore,
) (f *inprocess.FallbackThrottle, now func() time.Time, advance func(time.Duration)) {
	t.Helper()
	first, c := newThrottle(t, shared)
	second, d := newThrottle(t, local)
	return inprocess.NewFallbackThrottle(first, second), c.Now, func(by time.Duration) { c.Advance(by); d.Advance(by) }
}

func TestFallbackThrottleContract(t *testing.T) {
	for name, storeErr := range map[string]error{
		"available store": nil, "unavailable store": fault.New(fault.Unavailable, "unreachable"),
	} {
		t.Run(name, func(t *testing.T) {
			throttletest.Run(t, func(t *testing.T) throttletest.Subject {
				f, now, advance := newFallback(t, &fakeStore{err: storeErr}, new(fakeStore))
				return throttletest.Subject{
					Throttle: f, Limited: throttle.AuthAddress, Other: throttle.StepUpUser,
					Unlimited: throttle.APIAddress,
					Limit:     5, Window: 15 * time.Minute, Now: now, Advance: advance,
				}
			})
		})
	}
}

// TestTriesAreGivenBackWhereTheyWereCounted checks that GiveBack uses the store that counted the
// try. The shared store is unavailable for the second of three tries.
func TestTriesAreGivenBackWhereTheyWereCounted(t *testing.T) {
	shared, local := new(fakeStore), new(fakeStore)
	f, _, _ := newFallback(t, shared, local)
	var verdicts []throttle.Verdict
	for _, err := range []error{nil, fault.New(fault.Unavailable, "unreachable"), nil} {
		shared.err = err
		v, err := f.Try(t.Context(), throttle.AuthAddress, "k")
		if err != nil || !v.Allowed || v.Local != (len(verdicts) == 1) {
			t.Fatalf("try %d: %+v, %v", len(verdicts), v, err)
		}
		verdicts = append(verdicts, v)
	}
	for i, v := range verdicts {
		if err := f.GiveBack(t.Context(), throttle.AuthAddress, "k", v); err != nil {
			t.Fatalf("GiveBack of try %d: %v", i, err)
		}
	}
	for name, store := range map[string]*fakeStore{"shared": shared, "local": local} {
		for key, count := range store.counts {
			if count != 0 {
				t.Errorf("%s: the count is %d for %q, want 0", name, count, key)
			}
		}
	}
	if len(local.hits) != 2 {
		t.Errorf("%d hits in the process, want a try and its return", len(local.hits))
	}
}

func TestFallbackOnlyForUnavailableStore(t *testing.T) {
	shared, local := &fakeStore{err: fault.New(fault.Internal, "broken")}, new(fakeStore)
	f, _, _ := newFallback(t, shared, local)
	if _, err := f.Try(t.Context(), throttle.AuthAddress, "k"); !fault.Is(err, fault.Internal) {
		t.Errorf("an internal error: %v, want fault.Internal", err)
	}
	shared.err = fault.New(fault.Unavailable, "unreachable")
	left, leave := context.WithCancel(t.Context())
	leave()
	if _, err := f.Try(left, throttle.AuthAddress, "k"); err == nil {
		t.Error("Try returned no error for a canceled context")
	}
	late, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	<-late.Done()
	if v, err := f.Try(late, throttle.AuthAddress, "k"); err != nil || !v.Local {
		t.Errorf("a caller whose deadline has passed: %+v, %v, want a local verdict", v, err)
	}
	if len(local.hits) != 1 {
		t.Errorf("%d hits in the process, want 1", len(local.hits))
	}
}
