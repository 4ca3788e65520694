package inprocess

import (
	"context"
	"fmt"
	"time"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/ports/throttle"
)

// ownDomain is the domain in which the API's own limits are counted. Requests of the rate limit
// service cannot name it, because an empty domain is refused there (contract L-26).
const ownDomain ratelimit.Domain = ""

// Limit is how many tries a key has in each window.
type Limit struct {
	Requests uint64        // 0 = no limit
	Window   time.Duration // whole seconds, at least one, where there is a limit
}

// ThrottleConfig is what a Throttle counts.
type ThrottleConfig struct {
	// Limits holds each scope's limit; a scope that is missing has none.
	Limits map[throttle.Scope]Limit
	// Prefix begins all keys, so that several deployments can share a store (CACHE_KEY_PREFIX); see
	// ratelimit.ValidPrefix.
	Prefix string
}

// Throttle counts tries in the counter store that the rate limit service counts in, with its
// windows and its keys, on every instance together (contract A-52). It is safe for concurrent use.
//
// While the store is away Try and GiveBack return fault.Unavailable and nothing is known about the key, only its limit. The caller
// decides: what guards a secret, such as login and step-up, refuses the request (503), for a stranger must not get
// unlimited tries by overloading the store; a reading path may let it pass. A FallbackThrottle around it counts in the process
// instead. Lockout and step-up tries are counted in the
// database besides, and hold either way. An error of GiveBack is safe to ignore: the try stays counted until its window
// ends.
type Throttle struct {
	limits map[throttle.Scope]Limit
	store  counter.Store
	lines  *requestQueues
	clock  clock.Clock
	prefix string
}

// NewThrottle returns a throttle over a counter store. A limit whose window is not whole seconds, or a prefix that a
// store refuses, is an error.
func NewThrottle(cfg ThrottleConfig, store counter.Store, c clock.Clock) (*Throttle, error) {
	if !ratelimit.ValidPrefix(cfg.Prefix) {
		return nil, fmt.Errorf("prefix %q is not one that every store takes", cfg.Prefix)
	}
	limits := make(map[throttle.Scope]Limit, len(cfg.Limits))
	for scope, limit := range cfg.Limits {
		if limit.Requests == 0 {
			continue
		}
		if limit.Window < time.Second || limit.Window%time.Second != 0 {
			return nil, fmt.Errorf("window of scope %s must be whole seconds, at least one, not %v", scope, limit.Window)
		}
		limits[scope] = limit
	}
	return &Throttle{limits: limits, store: store, lines: newRequestQueues(store), clock: c, prefix: cfg.Prefix}, nil
}

// Try implements ports/throttle.
func (t *Throttle) Try(ctx context.Context, scope throttle.Scope, key string) (throttle.Verdict, error) {
	limit, ok := t.limits[scope]
	if !ok {
		return throttle.Verdict{Allowed: true, Unlimited: true}, nil
	}
	window := ratelimit.WindowAt(t.clock.Now(), limit.Window)
	v := throttle.Verdict{Limit: limit.Requests, Remaining: limit.Requests, ResetAt: window.End()}
	count, err := t.lines.countTogether(ctx, t.newHit(scope, key, window, 1))
	if err != nil {
		return v, err
	}
	v.Allowed, v.Remaining = count <= limit.Requests, limit.Requests-min(count, limit.Requests)
	return v, nil
}

// GiveBack implements ports/throttle.
func (t *Throttle) GiveBack(ctx context.Context, scope throttle.Scope, key string, v throttle.Verdict) error {
	limit, ok := t.limits[scope]
	if !ok || v.Unlimited {
		return nil
	}
	window := ratelimit.WindowAt(v.ResetAt.Add(-limit.Window), limit.Window)
	_, err := addHit(ctx, t.store, t.newHit(scope, key, window, -1))
	return err
}

func (t *Throttle) newHit(scope throttle.Scope, key string, w ratelimit.Window, addend int64) counter.Hit {
	name := ratelimit.AppendKey(make([]byte, 0, ratelimit.MaxKey), ratelimit.Counter{
		Prefix: t.prefix, Domain: ownDomain, Window: w,
		Entries: []ratelimit.Entry{{Key: string(scope), Value: key}},
	})
	return counter.Hit{
		Key: string(name), Addend: addend, Limit: t.limits[scope].Requests,
		Window: w.Length, TTL: w.Length + ratelimit.ClockSkew, Left: w.End().Sub(t.clock.Now()),
	}
}
