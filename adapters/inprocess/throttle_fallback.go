package inprocess

import (
	"context"
	"errors"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/throttle"
)

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
