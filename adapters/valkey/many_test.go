package valkey_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/ports/counter"
)

// TestManyHits requires of more hits than one script counts what the port promises of few.
func TestManyHits(t *testing.T) {
	c, key := open(t, newConfig(sharedServer(t))), newKeys()
	const size = 700
	fixed := make([]counter.Hit, size)
	for i := range fixed {
		fixed[i] = newMinuteHit(key(fmt.Sprint("fixed-", i%650))) // the last ones have keys of the first ones
	}
	after := make([]counter.Result, size)
	for round, want := range []uint64{1, 3} {
		if err := c.Count(t.Context(), fixed, after,
			counter.AllOrNone); err != nil || after[649].Count != uint64(round)+1 || after[0].Count != want ||
			after[650].Count != want+1 {
			t.Fatalf("round %d: %v, counts %d, %d and %d", round, err, after[649].Count, after[0].Count,
				after[650].Count)
		}
	}
	fixed[649].Addend = 100
	if err := c.Count(t.Context(), fixed, after,
		counter.AllOrNone); err != nil || after[649].Count != 102 || after[1].Count != 4 || after[2].Count != 4 {
		t.Errorf("one over its limit: %v, counts %d, %d and %d", err, after[649].Count, after[1].Count, after[2].Count)
	}

	hits, results := make([]counter.Hit, size), make([]counter.Result, size)
	for i := range hits {
		hits[i] = counter.Hit{
			Key: key(fmt.Sprint("bucket-", i)), Addend: 1, Limit: 1, Burst: 2, Window: time.Hour, TTL: time.Hour,
			Algorithm: ratelimit.TokenBucket,
		}
	}
	full := newMinuteHit(key("full"))
	full.Limit = 0
	hits[690] = full
	admitAll := func(what string, admitted bool, remaining, count uint64) {
		t.Helper()
		err := c.Count(t.Context(), hits, results, counter.AllOrNone)
		if v := results[1].Verdict; err != nil || results[2].Verdict.Remaining != remaining ||
			v.Remaining != remaining || results[600].Verdict.Admitted != admitted || results[690].Count != count {
			t.Errorf("%s: %v, %+v and %+v, count %d", what, err, v, results[600].Verdict, results[690].Count)
		}
	}
	admitAll("a fixed window over its limit", true, 2, 1)
	hits[690] = hits[689] // the same key twice fits
	admitAll("all fit", true, 1, 0)
	// in other scripts than the first of their keys
	hits[690].Key, hits[600].Key, hits[601].Key = key("other"), hits[1].Key, hits[2].Key
	admitAll("two of one key that do not fit together", false, 1, 0)
}
