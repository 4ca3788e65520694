// Package flight does what several callers wait for at the same time once for all of them.
package flight

import (
	"context"
	"time"

	"golang.org/x/sync/singleflight"
)

// Group is work by keys, which ends after its Deadline at the latest. It is safe for concurrent use.
type Group[V any] struct {
	Deadline time.Duration

	group singleflight.Group
}

// Join returns the result of work for a key that is in progress, or else of new work. It does not end
// with the context of the caller that began it, because others may wait for it. A caller whose context
// ends gets the error of the context at once. Callers share the result.
func (g *Group[V]) Join(ctx context.Context, key string, work func(context.Context) (V, error)) (got V, err error) {
	if err := ctx.Err(); err != nil {
		return got, err
	}
	result := g.group.DoChan(key, func() (any, error) {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.Deadline)
		defer cancel()
		return work(bounded)
	})
	select {
	case r := <-result:
		got, _ = r.Val.(V) // the zero value with an error
		return got, r.Err
	case <-ctx.Done():
		return got, ctx.Err()
	}
}
