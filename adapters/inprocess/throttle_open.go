package inprocess

import (
	"github.com/tollgate-dev/tollgate/core/ratelimit/lease"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/ports/throttle"
)

// OwnStore is the counter store of the API's own limits.
type OwnStore struct{ counter.Store }

// ThrottleStores are where the API's own limits are counted.
type ThrottleStores struct {
	Store  OwnStore
	Leases *lease.Leases // on Store, if instances share it; otherwise nil
	Local  counter.Store // counts while Store is unavailable; nil without a replacement
}

// OpenThrottle returns the limits of the API. In a store that instances share, those that protect
// no secrets are counted with leases, and all others one by one.
func OpenThrottle(cfg ThrottleConfig, s ThrottleStores, c clock.Clock) (throttle.Throttle, error) {
	exact, err := NewThrottle(cfg, s.Store, c)
	if err != nil || s.Leases == nil { // counters in the process are fast and always available
		return exact, err
	}
	leased := NewLeasedThrottle(exact, s.Leases, throttle.APIAddress, throttle.RegistryAddress)
	if s.Local == nil {
		return leased, nil
	}
	local, err := NewThrottle(cfg, s.Local, c)
	return NewFallbackThrottle(leased, local), err
}
