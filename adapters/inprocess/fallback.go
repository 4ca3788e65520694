package inprocess

import (
	"context"
	"errors"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/throttle"
)

// FallbackThrottle counts with one throttle, and with another one, which has its counters in this process, while the
// counter store of the first is away. It is safe for concurrent use.
type FallbackThrottle struct{ shared, local throttle.Throttle }

// NewFallbackThrottle returns a throttle over shared, with local for the time in which shared is unavailable.
func NewFallbackThrottle(shared, local throttle.Throttle) *FallbackThrottle {
	return &FallbackThrottle{shared: shared, local: local}
}

// Try implements ports/throttle.
func (f *FallbackThrottle) Try(ctx context.Context, scope throttle.Scope, key string) (throttle.Verdict, error) {
	v, err := f.shared.Try(ctx, scope, key)
	if !fault.Is(err, fault.Unavailable) || errors.Is(ctx.Err(), context.Canceled) { // a caller that left says nothing about the store
		return v, err
	}
	v, err = f.local.Try(context.WithoutCancel(ctx), scope, key) // does not wait, and the deadline may have passed already
	v.Local = true
	return v, err
}

// GiveBack implements ports/throttle. A try is given back where it was counted.
func (f *FallbackThrottle) GiveBack(ctx context.Context, scope throttle.Scope, key string, v throttle.Verdict) error {
	if v.Local {
		return f.local.GiveBack(ctx, scope, key, v)
	}
	return f.shared.GiveBack(ctx, scope, key, v)
}
