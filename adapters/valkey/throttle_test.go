package valkey_test

import (
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/inprocess"
	"github.com/tollgate-dev/tollgate/core/ratelimit/lease"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/ports/throttle"
	"github.com/tollgate-dev/tollgate/ports/throttle/throttletest"
)

// newLeasedThrottle returns a throttle with one limit, which it counts with leases. Throttles with the
// same prefix count together, always in the same window.
func newLeasedThrottle(t testing.TB, store counter.Store, prefix string, limit uint64) *inprocess.Throttle {
	t.Helper()
	now := clocktest.NewManual(time.Unix(1_000_000, 0))
	exact, err := inprocess.NewThrottle(inprocess.ThrottleConfig{Prefix: prefix, Limits: map[throttle.Scope]inprocess.Limit{
		throttle.RegistryAddress: {Requests: limit, Window: 15 * time.Minute},
	}}, store, now)
	if err != nil {
		t.Fatal(err)
	}
	return inprocess.NewLeasedThrottle(exact, lease.New(store, now, nil), throttle.RegistryAddress)
}

// TestInstancesWithLeasesAdmitTheLimitTogether checks that eight instances, each with its own
// connections, never admit more than the limit, and not much less.
func TestInstancesWithLeasesAdmitTheLimitTogether(t *testing.T) {
	const limit = 20_000
	address, prefix := sharedServer(t), newKeys()("")
	all := throttletest.Instances{Scope: throttle.RegistryAddress, Limit: limit, AtLeast: limit * 9 / 10}
	for range 8 {
		all.Throttles = append(all.Throttles, newLeasedThrottle(t, open(t, newConfig(address)), prefix, limit))
	}
	throttletest.AdmitTogether(t, all)
}

// BenchmarkThrottle measures one decision about a request to the registry of a hot address.
func BenchmarkThrottle(b *testing.B) {
	th := newLeasedThrottle(b, open(b, newConfig(sharedServer(b))), newKeys()(""), 1<<40)
	throttletest.BenchmarkTry(b, th, throttle.RegistryAddress)
}
