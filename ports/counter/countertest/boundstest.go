package countertest

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/test/await"
)

// The limit of both keys of keepsBounds in a second, the burst of the bucket, the most hits of a
// call, and how long the callers go on by the clock of the store: longer than a window and until
// some were refused, but not for ever.
const (
	boundLimit = 200
	boundBurst = 50
	boundHits  = 3
	boundTime  = 1100 * time.Millisecond
	boundMost  = await.Timeout
)

// boundFull is how long the bucket takes to fill up after a refusal.
const boundFull = (boundBurst - boundHits) * time.Second / boundLimit

// keepsBounds lets many callers make hits at the same time. In no interval are more admitted than
// the bounds of the algorithms, and between two refusals of a bucket no fewer than its rate says,
// less the hits of one call.
func keepsBounds(t *testing.T, s Subject) {
	now := time.Now
	if s.Now != nil {
		now = s.Now
	}
	window := counter.Hit{
		Key: s.Key("bounds-s"), Limit: boundLimit, Window: time.Second, TTL: 3 * time.Second,
		Algorithm: ratelimit.SlidingWindow,
	}
	bucket := window
	bucket.Key, bucket.Algorithm, bucket.Burst = s.Key("bounds-b"), ratelimit.TokenBucket, boundBurst
	var (
		all     sync.WaitGroup
		mu      sync.Mutex
		events  [2][]boundEvent
		refused atomic.Bool
		began   = now()
	)
	for caller := range parallel / 4 {
		all.Go(func() {
			var own [2][]boundEvent
			var latest [2]time.Time // of the refusals in own
			results := make([]counter.Result, 2)
			for i := caller; goesOn(now().Sub(began), refused.Load()); i += parallel / 4 {
				n := int64(i*7919%1009%boundHits) + 1 // any number of hits
				began := now()
				hits := []counter.Hit{with(window, n), with(bucket, n)}
				if err := s.Store.Count(t.Context(), hits, results, counter.Each); err != nil {
					t.Errorf("Count: %v", err)
					return
				}
				if s.Advance != nil {
					s.Advance(time.Duration(i*104_729%1_000_003) * time.Nanosecond) // any time below a millisecond
				}
				if !results[1].Verdict.Admitted {
					refused.Store(true)
				}
				for k := range own {
					e := boundEvent{began, now(), int(n), results[k].Verdict.Admitted}
					if !e.admitted {
						if began.Sub(latest[k]) < time.Millisecond {
							continue // a fast store refuses millions
						}
						latest[k] = began
					}
					own[k] = append(own[k], e)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			for i := range own {
				events[i] = append(events[i], own[i]...)
			}
		})
	}
	all.Wait()
	checkBounds(t, events[0], "sliding window", time.Second, func(time.Duration) float64 { return 2*boundLimit - 1 })
	rate := func(d time.Duration) float64 { return boundLimit * d.Seconds() }
	for _, length := range []time.Duration{
		time.Millisecond, 20 * time.Millisecond, 200 * time.Millisecond, time.Second,
	} {
		checkBounds(t, events[1], "bucket", length, func(d time.Duration) float64 { return boundBurst + rate(d) })
	}
	checkRefusals(t, events[1], rate)
}

// goesOn reports whether the callers of keepsBounds go on after a time. On a machine that is so
// slow that none was refused, they do.
func goesOn(passed time.Duration, refused bool) bool {
	return passed < boundTime || !refused && passed < boundMost
}

// boundEvent is a call: when it began and ended, its hits, and whether they were admitted.
type boundEvent struct {
	began, ended time.Time
	hits         int
	admitted     bool
}

// checkBounds checks the hits of calls that lie whole in an interval from the beginning of a call.
func checkBounds(
	t *testing.T, events []boundEvent, name string, length time.Duration, most func(time.Duration) float64,
) {
	t.Helper()
	admitted := slices.DeleteFunc(slices.Clone(events), func(e boundEvent) bool { return !e.admitted })
	for _, first := range admitted {
		sum := 0
		for _, e := range admitted {
			if !e.began.Before(first.began) && e.ended.Sub(first.began) <= length {
				sum += e.hits
			}
		}
		if float64(sum) > most(length) {
			t.Errorf("%s: %d hits are admitted within %v, want at most %.1f", name, sum, length, most(length))
			return
		}
	}
}

// checkRefusals checks the hits from the first refusal to the last one. A refusal leaves fewer hits
// in the bucket than those of one call. If the callers then pause for so long that it fills up,
// as on a busy machine, the time after that adds nothing to it and is left out.
func checkRefusals(t *testing.T, events []boundEvent, rate func(time.Duration) float64) {
	t.Helper()
	refused := slices.DeleteFunc(slices.Clone(events), func(e boundEvent) bool { return e.admitted })
	if len(refused) == 0 {
		t.Error("no hits were refused")
		return
	}
	first := slices.MinFunc(refused, func(a, b boundEvent) int { return a.ended.Compare(b.ended) })
	slices.SortFunc(refused, func(a, b boundEvent) int { return a.began.Compare(b.began) })
	last := refused[len(refused)-1]
	filling := last.began.Sub(first.ended)
	for i := range len(refused) - 1 {
		filling -= max(refused[i+1].ended.Sub(refused[i].began)-boundFull, 0)
	}
	sum := 0
	for _, e := range events {
		if e.admitted && !e.ended.Before(first.began) && !e.began.After(last.ended) {
			sum += e.hits
		}
	}
	if least := rate(filling) - boundHits; float64(sum) < least {
		t.Errorf("%d hits are admitted in %v between refusals, want at least %.1f", sum, filling, least)
	}
}
