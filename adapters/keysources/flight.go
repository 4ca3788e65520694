package keysources

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/tollgate-dev/tollgate/core/registry/publisher"
)

// flight reads what a domain has published once for all callers that wait for it at the same time.
type flight struct {
	group    singleflight.Group
	deadline time.Duration // of one read
	read     func(ctx context.Context, d publisher.Domain) ([]string, error)
}

// join returns the result of a read that is in progress, or else of a new one. A read does not end
// with the context of the caller that began it, because others may wait for it. A caller whose
// context ends gets the error of the context at once.
func (f *flight) join(ctx context.Context, d publisher.Domain) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	result := f.group.DoChan(d.String(), func() (any, error) {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.deadline)
		defer cancel()
		return f.read(bounded, d)
	})
	select {
	case r := <-result:
		texts, _ := r.Val.([]string) // nil with an error
		return slices.Clone(texts), r.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
