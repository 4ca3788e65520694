package wiring

import (
	"context"
	"testing"
	"time"

	metrics "github.com/prometheus/client_golang/prometheus"

	"github.com/tollgate-dev/tollgate/adapters/inprocess"
	"github.com/tollgate-dev/tollgate/adapters/memory"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/ratelimit/decide"
	"github.com/tollgate-dev/tollgate/core/ratelimit/lease"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/ports/throttle"
	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

// observedStore counts the calls of a store. If err is set, Add returns it.
type observedStore struct {
	counter.Store
	calls int
	err   error
}

func (s *observedStore) Count(ctx context.Context, hits []counter.Hit, results []counter.Result, m counter.Mode) error {
	s.calls++
	if s.err != nil {
		return s.err
	}
	return s.Store.Count(ctx, hits, results, m)
}

// TestOnlyReadsAreCountedWithLeases requires that limits which protect secrets cost one call of the
// store each, and those of the registry and of reads of one's own account fewer if instances share
// the store.
func TestOnlyReadsAreCountedWithLeases(t *testing.T) {
	limits := settings.ThrottleConfig(settings.Settings{
		Limits: settings.Limits{
			Auth: 10_000, API: 10_000, Registry: 10_000, StepUp: 10_000, Notices: 10_000, Window: time.Minute,
			StepUpWindow: time.Minute,
		},
		PublisherLimits: settings.PublisherLimits{Proofs: 10_000, Domain: 10_000},
	})
	for name, c := range map[string]struct {
		shared bool
		mode   decide.FailureMode
		calls  int
	}{
		"in the process":           {mode: decide.FailError, calls: 1000},
		"shared":                   {shared: true, mode: decide.FailError, calls: 100},
		"shared, with a fallback":  {shared: true, mode: decide.FailLocal, calls: 100},
		"shared, without counting": {shared: true, mode: decide.FailOpen, calls: 100},
	} {
		t.Run(name, func(t *testing.T) {
			now := clocktest.NewManual(time.Unix(1_000_000, 0))
			store := &observedStore{Store: memory.NewCounters(now, memory.Config{MaxCounters: 100})}
			parts := throttleParts{
				Store: inprocess.OwnStore{Store: store}, Memory: memory.Config{MaxCounters: 100},
				Decide: decide.Config{FailureMode: c.mode},
			}
			if c.shared {
				parts.Leases = lease.New(store, now, nil)
			}
			th, err := chooseThrottle(limits, parts, now, metrics.NewRegistry())
			must.Succeed(t, err)
			for scope := range limits.Limits {
				want := 1000
				if scope == throttle.RegistryAddress || scope == throttle.APIAddress {
					want = c.calls
				}
				store.calls = 0
				for range 1000 {
					if _, err := th.Try(t.Context(), scope, "k"); err != nil {
						t.Fatal(err)
					}
				}
				if store.calls > want || want == 1000 && store.calls < want {
					t.Errorf("%s: %d calls of the store for 1000 tries, want %d", scope, store.calls, want)
				}
			}
			wantFallback(t, th, store, c.mode != decide.FailError)
		})
	}
}

// wantFallback requires that requests to the registry are counted in the process while the store is
// unavailable, or not at all.
func wantFallback(t *testing.T, th throttle.Throttle, store *observedStore, local bool) {
	t.Helper()
	store.err = fault.New(fault.Unavailable, "unreachable")
	v, err := th.Try(t.Context(), throttle.RegistryAddress, "another key")
	if local && (err != nil || !v.Local || !v.Allowed) || !local && !fault.Is(err, fault.Unavailable) {
		t.Errorf("without the store: %+v, %v, want a local verdict: %t", v, err, local)
	}
}
