package memcached_test

import (
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/inprocess"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/ports/throttle"
	"github.com/tollgate-dev/tollgate/ports/throttle/throttletest"
)

// newThrottle returns a throttle with one limit. Throttles with the same prefix count together,
// always in the same window.
func newThrottle(t testing.TB, store counter.Store, prefix string, limit uint64) *inprocess.Throttle {
	t.Helper()
	th, err := inprocess.NewThrottle(inprocess.ThrottleConfig{Prefix: prefix, Limits: map[throttle.Scope]inprocess.Limit{
		throttle.RegistryAddress: {Requests: limit, Window: 15 * time.Minute},
	}}, store, clocktest.NewManual(time.Unix(1_000_000, 0)))
	if err != nil {
		t.Fatal(err)
	}
	return th
}

// TestInstancesWithSharesAdmitTheLimitTogether checks that eight instances, each with its own
// connections, never admit more than the limit, and not much less.
func TestInstancesWithSharesAdmitTheLimitTogether(t *testing.T) {
	const limit = 20_000
	address, prefix := sharedServer(t), newKeys()("")
	all := throttletest.Instances{Scope: throttle.RegistryAddress, Limit: limit, AtLeast: limit * 9 / 10}
	for range 8 {
		exact := newThrottle(t, openClient(t, newConfig(address)), prefix, limit)
		all.Throttles = append(all.Throttles, inprocess.NewShareThrottle(exact, throttle.RegistryAddress))
	}
	throttletest.AdmitTogether(t, all)
}
