package decide_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/memory"
	"github.com/tollgate-dev/tollgate/core/ratelimit/decide"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/counter"
)

// slowStore takes a second for each call.
type slowStore struct{ counter.Store }

func (s slowStore) Count(ctx context.Context, hits []counter.Hit, results []counter.Result, m counter.Mode) error {
	time.Sleep(time.Second)
	return s.Store.Count(ctx, hits, results, m)
}

// TestHitsWithAndWithoutLeasesAreCountedTogether requires that a request with both takes no longer
// than one of them: each must have its answer within the timeout of the store.
func TestHitsWithAndWithoutLeasesAreCountedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := clocktest.NewManual(now)
		store := slowStore{memory.NewCounters(k, memory.Config{MaxCounters: 10})}
		b := newFixture(t, func(c *decide.Config, p *decide.Ports) { withLeases(true, store, c, p, k) },
			leaseRules()...)
		began := time.Now()
		d := b.mustDecide(t, newRequest("plain=v", "bucket=v"))
		checkCodes(t, d, ok, ok, ok)
		wantEqual(t, time.Since(began), time.Second, "the decision takes")
		if d.Statuses[0].Remaining != 119 || d.Statuses[1].Remaining != 49 {
			t.Errorf("%d and %d are left, want 119 and 49", d.Statuses[0].Remaining, d.Statuses[1].Remaining)
		}
	})
}
