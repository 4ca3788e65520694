package countertest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/ports/counter"
)

// OverLimitSubject is a cache under test, with room for at least a hundred short keys, and its
// clock.
type OverLimitSubject struct {
	Cache   counter.OverLimitCache
	Now     func() time.Time
	Advance func(time.Duration)
}

// RunOverLimitCache runs the tests of an over-limit cache. open returns an empty one. How a cache
// bounds its memory is tested in its own package.
func RunOverLimitCache(t *testing.T, open func(*testing.T) OverLimitSubject) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, OverLimitSubject){
		"nothing is over at first":                  isEmptyAtFirst,
		"a verdict is for its limit and lower ones": answersForItsLimit,
		"a verdict is for its burst and less":       answersForItsBurst,
		"the last verdict counts":                   keepsLastNote,
		"a verdict ends with its window":            endsWithItsWindow,
		"a window that has ended":                   ignoresEndedWindow,
		"forgetting":                                forgetsKey,
		"keys are copied":                           copiesKeys,
		"parallel callers":                          notesInParallel,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

func isEmptyAtFirst(t *testing.T, s OverLimitSubject) {
	s.want(t, "k", 0, false)
}

func answersForItsLimit(t *testing.T, s OverLimitSubject) {
	s.note("k", 10, time.Minute)
	s.want(t, "k", 10, true)
	s.want(t, "k", 3, true)
	s.want(t, "k", 11, false)
	s.want(t, "other", 10, false)
	s.note("zero", 0, time.Minute)
	s.want(t, "zero", 0, true)
	s.want(t, "zero", 1, false)
	s.note("greatest", 1<<32-1, time.Minute)
	s.want(t, "greatest", 1<<32-1, true)
}

// answersForItsBurst: a token bucket of which the rate or the burst was raised is not known to be
// over.
func answersForItsBurst(t *testing.T, s OverLimitSubject) {
	limit := func(requests, burst uint32) ratelimit.Limit {
		return ratelimit.Limit{
			RequestsPerUnit: requests, Unit: ratelimit.Day, Algorithm: ratelimit.TokenBucket, Burst: burst,
		}
	}
	s.Cache.Note("k", limit(10, 5), s.Now().Add(time.Minute))
	for l, want := range map[ratelimit.Limit]bool{
		limit(10, 5): true, limit(9, 5): true, limit(10, 1): true, limit(11, 5): false, limit(10, 6): false,
		limit(9, 6): false,
	} {
		if _, over := s.Cache.Over("k", l, s.Now()); over != want {
			t.Errorf("%+v is over: %v, want %v", l, over, want)
		}
	}
}

func keepsLastNote(t *testing.T, s OverLimitSubject) {
	s.note("k", 10, time.Minute)
	s.note("k", 20, time.Minute)
	s.want(t, "k", 20, true)
	s.note("k", 5, time.Minute)
	s.want(t, "k", 20, false)
	s.want(t, "k", 5, true)
}

func endsWithItsWindow(t *testing.T, s OverLimitSubject) {
	s.note("k", 10, time.Minute)
	s.note("longer", 10, time.Hour)
	s.Advance(time.Minute - time.Nanosecond)
	s.want(t, "k", 10, true)
	s.Advance(time.Nanosecond)
	s.want(t, "k", 10, false)
	s.want(t, "longer", 10, true)
	s.note("k", 10, time.Minute)
	s.want(t, "k", 10, true)
}

func ignoresEndedWindow(t *testing.T, s OverLimitSubject) {
	s.note("k", 10, 0)
	s.want(t, "k", 10, false)
	s.note("k", 10, -time.Hour)
	s.want(t, "k", 10, false)
}

func forgetsKey(t *testing.T, s OverLimitSubject) {
	s.note("k", 10, time.Minute)
	s.note("other", 10, time.Minute)
	s.Cache.Forget("k")
	s.Cache.Forget("never noted")
	s.want(t, "k", 10, false)
	s.want(t, "other", 10, true)
}

func copiesKeys(t *testing.T, s OverLimitSubject) {
	for i := range 100 {
		s.note(fmt.Sprint("key", i), 10, time.Minute)
	}
	for i := range 100 {
		s.want(t, fmt.Sprint("key", i), 10, true)
	}
}

// notesInParallel lets callers use Note, Over and Forget for the same few keys at once. Keys that
// no caller uses afterwards must be as they were left.
func notesInParallel(t *testing.T, s OverLimitSubject) {
	now := s.Now()
	var all sync.WaitGroup
	for caller := range 8 {
		all.Go(func() {
			own := fmt.Sprint("own", caller)
			for i := range 500 {
				s.Cache.Note("shared", requests(uint32(i%7)), now.Add(time.Minute)) //nolint:gosec // below seven
				if _, over := s.Cache.Over("shared", requests(7), now); over {
					t.Error("a verdict for a lower limit holds for a greater one")
				}
				s.Cache.Note(own, requests(1), now.Add(time.Minute))
				s.Cache.Forget("shared")
			}
		})
	}
	all.Wait()
	for caller := range 8 {
		s.want(t, fmt.Sprint("own", caller), 1, true)
	}
	s.Cache.Forget("shared")
	s.want(t, "shared", 0, false)
}

// requests is a limit of a fixed window.
func requests(n uint32) ratelimit.Limit {
	return ratelimit.Limit{RequestsPerUnit: n, Unit: ratelimit.Hour}
}

func (s OverLimitSubject) note(key string, limit uint32, lasts time.Duration) {
	memory := []byte(key)
	s.Cache.Note(string(memory), requests(limit), s.Now().Add(lasts))
}

func (s OverLimitSubject) want(t *testing.T, key string, limit uint32, want bool) {
	t.Helper()
	if left, got := s.Cache.Over(key, requests(limit), s.Now()); got != want || got && left <= 0 {
		t.Errorf("%s is over %d: %v, want %v", key, limit, got, want)
	}
}
