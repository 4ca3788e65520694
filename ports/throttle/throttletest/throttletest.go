// Package throttletest has the contract tests of ports/throttle. They test what callers of a
// throttle rely on, not where it keeps its counters.
package throttletest

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/ports/throttle"
)

// Subject is a throttle under test.
type Subject struct {
	Throttle throttle.Throttle
	// Limited is a scope with a limit of Limit tries in Window, Unlimited one without a limit.
	Limited, Unlimited throttle.Scope
	// Other is a second limited scope.
	Other  throttle.Scope
	Limit  uint64
	Window time.Duration
	// Now returns the throttle's time, and Advance moves it.
	Now     func() time.Time
	Advance func(d time.Duration)
}

// Run runs the suite. open returns a throttle that has counted nothing.
func Run(t *testing.T, open func(t *testing.T) Subject) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, Subject){
		"attempts are admitted up to the limit":                          admitsToLimit,
		"attempts are admitted again in the next window":                 startsAgain,
		"keys and scopes are counted separately":                         countsSeparately,
		"an attempt that is given back is not counted":                   givesBack,
		"an attempt is given back in the window in which it was counted": givesBackInItsWindow,
		"a scope without a limit admits every attempt":                   admitsUnlimited,
		"any text is a key":                                              acceptsAnyKey,
		"parallel attempts are admitted exactly up to the limit":         admitsExactly,
		"a verdict has the end of the window":                            returnsReset,
		"an attempt can be given back once":                              givesBackOnce,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

func countTry(t *testing.T, s Subject, scope throttle.Scope, key string) throttle.Verdict {
	t.Helper()
	v, err := s.Throttle.Try(t.Context(), scope, key)
	if err != nil {
		t.Fatalf("Try: %v", err)
	}
	return v
}

func useUp(t *testing.T, s Subject, scope throttle.Scope, key string) {
	t.Helper()
	for range s.Limit {
		if v := countTry(t, s, scope, key); !v.Allowed {
			t.Fatalf("refused within the limit: %+v", v)
		}
	}
}

func giveBack(t *testing.T, s Subject, v throttle.Verdict) {
	t.Helper()
	if err := s.Throttle.GiveBack(t.Context(), s.Limited, "k", v); err != nil {
		t.Fatalf("GiveBack: %v", err)
	}
}

func admitsToLimit(t *testing.T, s Subject) {
	for n := uint64(1); n <= s.Limit; n++ {
		v := countTry(t, s, s.Limited, "k")
		if !v.Allowed || v.Unlimited || v.Limit != s.Limit || v.Remaining != s.Limit-n {
			t.Fatalf("try %d of %d: %+v", n, s.Limit, v)
		}
	}
	for range 3 {
		if v := countTry(t, s, s.Limited, "k"); v.Allowed || v.Remaining != 0 || v.Limit != s.Limit {
			t.Errorf("try over the limit: %+v", v)
		}
	}
}

func startsAgain(t *testing.T, s Subject) {
	useUp(t, s, s.Limited, "k")
	v := countTry(t, s, s.Limited, "k")
	s.Advance(v.ResetAt.Sub(s.Now()) - time.Nanosecond)
	if last := countTry(t, s, s.Limited, "k"); last.Allowed || !last.ResetAt.Equal(v.ResetAt) {
		t.Errorf("at the window's last moment: %+v", last)
	}
	s.Advance(time.Nanosecond)
	if next := countTry(t, s, s.Limited, "k"); !next.Allowed || next.Remaining != s.Limit-1 ||
		!next.ResetAt.Equal(v.ResetAt.Add(s.Window)) {
		t.Errorf("in the next window: %+v", next)
	}
}

func returnsReset(t *testing.T, s Subject) {
	v := countTry(t, s, s.Limited, "k")
	if left := v.ResetAt.Sub(s.Now()); left <= 0 || left > s.Window {
		t.Errorf("the window ends in %v, want within %v", left, s.Window)
	}
	if v.ResetAt.UnixNano()%int64(s.Window) != 0 {
		t.Errorf("the window ends at %v, which is not a multiple of %v since the epoch", v.ResetAt, s.Window)
	}
}

func countsSeparately(t *testing.T, s Subject) {
	useUp(t, s, s.Limited, "k")
	for _, key := range []string{"k2", "K", "", "k|"} {
		if v := countTry(t, s, s.Limited, key); v.Remaining != s.Limit-1 {
			t.Errorf("key %q: %+v", key, v)
		}
	}
	if v := countTry(t, s, s.Other, "k"); !v.Allowed || v.Remaining != v.Limit-1 {
		t.Errorf("another scope: %+v", v)
	}
}

func givesBack(t *testing.T, s Subject) {
	useUp(t, s, s.Limited, "k")
	refused := countTry(t, s, s.Limited, "k")
	giveBack(t, s, refused)
	giveBack(t, s, refused)
	if v := countTry(t, s, s.Limited, "k"); !v.Allowed || v.Remaining != 0 {
		t.Errorf("after one was given back: %+v", v)
	}
}

func givesBackInItsWindow(t *testing.T, s Subject) {
	v := countTry(t, s, s.Limited, "k")
	s.Advance(s.Window)
	countTry(t, s, s.Limited, "k")
	giveBack(t, s, v)
	if v := countTry(t, s, s.Limited, "k"); v.Remaining != s.Limit-2 {
		t.Errorf("a try of an earlier window was given back in this one: %+v", v)
	}
}

func givesBackOnce(t *testing.T, s Subject) {
	v := countTry(t, s, s.Limited, "k")
	for range 3 {
		giveBack(t, s, v)
	}
	if v := countTry(t, s, s.Limited, "k"); v.Remaining != s.Limit-1 {
		t.Errorf("more given back than counted: %+v", v)
	}
}

func admitsUnlimited(t *testing.T, s Subject) {
	for _, scope := range []throttle.Scope{s.Unlimited, "no such scope"} {
		v := countTry(t, s, scope, "k")
		if v != (throttle.Verdict{Allowed: true, Unlimited: true}) {
			t.Errorf("scope %q: %+v", scope, v)
		}
		if err := s.Throttle.GiveBack(t.Context(), scope, "k", v); err != nil {
			t.Errorf("GiveBack in scope %q: %v", scope, err)
		}
	}
}

func acceptsAnyKey(t *testing.T, s Subject) {
	long := strings.Repeat("x", 1000)
	for _, key := range []string{long, long + "y", "with space", "with\nnewline", "ümlaut", "\x00", "fe80::1%eth0"} {
		useUp(t, s, s.Limited, key)
		if v := countTry(t, s, s.Limited, key); v.Allowed {
			t.Errorf("key %.20q: allowed over the limit", key)
		}
	}
}

func admitsExactly(t *testing.T, s Subject) {
	var allowed atomic.Uint64
	var all sync.WaitGroup
	for range 4 * s.Limit {
		all.Go(func() {
			v, err := s.Throttle.Try(t.Context(), s.Limited, "k")
			if err != nil {
				t.Errorf("Try: %v", err)
			}
			if v.Allowed {
				allowed.Add(1)
			}
		})
	}
	all.Wait()
	if allowed.Load() != s.Limit {
		t.Errorf("%d tries allowed, want %d", allowed.Load(), s.Limit)
	}
}
