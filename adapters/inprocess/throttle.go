package inprocess

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/lease"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/ports/throttle"
)

// ownDomain is the domain for the limits of the API itself. Requests to the rate limit service
// cannot use it, because the service refuses an empty domain (contract L-26).
const ownDomain ratelimit.Domain = ""

// Limit is the number of tries that a key has in each window.
type Limit struct {
	Requests uint64        // 0 = no limit
	Window   time.Duration // whole seconds, at least one; ignored if Requests is 0
}

// ThrottleConfig contains the limits of a Throttle.
type ThrottleConfig struct {
	// Limits contains the limit of each scope. A missing scope has no limit.
	Limits map[throttle.Scope]Limit
	// Prefix is the start of all keys, so that several deployments can share a store
	// (CACHE_KEY_PREFIX); see ratelimit.ValidPrefix.
	Prefix string
}

// Throttle counts tries in the counter store of the rate limit service, with the same windows and
// keys, for all instances together (contract A-52). It is safe for concurrent use.
//
// While the store is unavailable, Try and GiveBack return fault.Unavailable, and only the limit of
// the key is known. The caller decides. A use case that protects a secret, for example login or
// step-up, refuses the request (503), because otherwise an attacker could get unlimited tries by
// overloading the store. A reading request may continue. A FallbackThrottle around this one counts
// in the process instead. The database also counts failures for lockout and step-up, so these
// limits always hold. A caller may ignore an error of GiveBack: the try then stays counted until
// its window ends.
type Throttle struct {
	limits map[throttle.Scope]Limit
	store  counter.Store
	clock  clock.Clock
	prefix string
	leases *lease.Leases // counts the scopes of leased; nil without any
	leased []throttle.Scope
	seed   maphash.Seed // of the IDs of leases
}

// NewThrottle returns a throttle on a counter store. It returns an error if a window is not a
// number of whole seconds, or if a store could refuse the prefix.
func NewThrottle(cfg ThrottleConfig, store counter.Store, c clock.Clock) (*Throttle, error) {
	if !ratelimit.ValidPrefix(cfg.Prefix) {
		return nil, fmt.Errorf("prefix %q must have only characters that every counter store accepts", cfg.Prefix)
	}
	limits := make(map[throttle.Scope]Limit, len(cfg.Limits))
	for scope, limit := range cfg.Limits {
		if limit.Requests == 0 {
			continue
		}
		if limit.Window < time.Second || limit.Window%time.Second != 0 {
			return nil,
				fmt.Errorf("the window of scope %s must be a whole number of seconds, at least one, not %v", scope,
					limit.Window)
		}
		limits[scope] = limit
	}
	return &Throttle{limits: limits, store: store, clock: c, prefix: cfg.Prefix}, nil
}

// NewLeasedThrottle returns a throttle that is like exact, except that it counts scopes with
// leases: an instance holds shares of the limits of hot keys, and admits tries from them without a
// call to the store (contract L-70). l must count in the store of exact.
func NewLeasedThrottle(exact *Throttle, l *lease.Leases, scopes ...throttle.Scope) *Throttle {
	t := *exact
	t.leases, t.leased, t.seed = l, scopes, maphash.MakeSeed()
	return &t
}

// Try implements throttle.Throttle.
func (t *Throttle) Try(ctx context.Context, scope throttle.Scope, key string) (throttle.Verdict, error) {
	limit, ok := t.limits[scope]
	if !ok {
		return throttle.Verdict{Allowed: true, Unlimited: true}, nil
	}
	now := t.clock.Now()
	window := ratelimit.WindowAt(now, limit.Window)
	v := throttle.Verdict{Limit: limit.Requests, Remaining: limit.Requests, ResetAt: window.End()}
	count, err := t.addTry(ctx, try{scope, key, window, now}, 1)
	if err != nil {
		return v, err
	}
	v.Allowed, v.Remaining = count <= limit.Requests, limit.Requests-min(count, limit.Requests)
	return v, nil
}

// GiveBack implements throttle.Throttle.
func (t *Throttle) GiveBack(ctx context.Context, scope throttle.Scope, key string, v throttle.Verdict) error {
	limit, ok := t.limits[scope]
	if !ok || v.Unlimited {
		return nil
	}
	window := ratelimit.WindowAt(v.ResetAt.Add(-limit.Window), limit.Window)
	_, err := t.addTry(ctx, try{scope, key, window, t.clock.Now()}, -1)
	return err
}

// try is a try of a key in a window.
type try struct {
	scope  throttle.Scope
	key    string
	window ratelimit.Window
	now    time.Time
}

// addTry adds 1 or -1 to the counter of a try and returns the count after it.
func (t *Throttle) addTry(ctx context.Context, of try, addend int64) (uint64, error) {
	h := t.newHit(of, addend)
	if !slices.Contains(t.leased, of.scope) {
		return counter.Add(ctx, t.store, h)
	}
	results := make([]counter.Result, 1)
	err := t.leases.Add(ctx, lease.Batch{
		Hits: []counter.Hit{h}, IDs: []lease.ID{t.leaseID(of)}, Results: results, Now: of.now,
	})
	return results[0].Count, err
}

// leaseID returns the ID of the counter of a key, which is the same in all windows.
func (t *Throttle) leaseID(of try) lease.ID {
	scope := maphash.String(t.seed, string(of.scope))
	return lease.ID(scope*0x9E3779B97F4A7C15 ^ maphash.String(t.seed, of.key) | 1) // not 0, which is no lease
}

func (t *Throttle) newHit(of try, addend int64) counter.Hit {
	w := of.window
	name := ratelimit.AppendKey(make([]byte, 0, ratelimit.MaxKey), ratelimit.Counter{
		Prefix: t.prefix, Domain: ownDomain, Window: w,
		Entries: []ratelimit.Entry{{Key: string(of.scope), Value: of.key}},
	})
	return counter.Hit{
		Key: string(name), Addend: addend, Limit: t.limits[of.scope].Requests,
		Window: w.Length, TTL: w.Length + ratelimit.ClockSkew, Left: w.End().Sub(of.now),
	}
}

// FallbackThrottle counts in a shared throttle. While the counter store of that throttle is
// unavailable, it counts in a local one, which counts in this process. It is safe for concurrent
// use.
type FallbackThrottle struct{ shared, local throttle.Throttle }

// NewFallbackThrottle returns a throttle that uses shared, and local while shared is unavailable.
func NewFallbackThrottle(shared, local throttle.Throttle) *FallbackThrottle {
	return &FallbackThrottle{shared: shared, local: local}
}

// Try implements throttle.Throttle.
func (f *FallbackThrottle) Try(ctx context.Context, scope throttle.Scope, key string) (throttle.Verdict, error) {
	v, err := f.shared.Try(ctx, scope, key)
	// a canceled call says nothing about the store
	if !fault.Is(err, fault.Unavailable) || errors.Is(ctx.Err(), context.Canceled) {
		return v, err
	}
	// the deadline of ctx may have passed; local does not block
	v, err = f.local.Try(context.WithoutCancel(ctx), scope, key)
	v.Local = true
	return v, err
}

// GiveBack implements throttle.Throttle. It uses the throttle that counted the try.
func (f *FallbackThrottle) GiveBack(ctx context.Context, scope throttle.Scope, key string, v throttle.Verdict) error {
	if v.Local {
		return f.local.GiveBack(ctx, scope, key, v)
	}
	return f.shared.GiveBack(ctx, scope, key, v)
}

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
