package change

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
)

// ReleaseTools releases a version of a locked server that is in quarantine because of its tools (contract
// W-7), and returns what stores that; nil if it is not.
func ReleaseTools(
	ctx context.Context, p Ports, s Server, v registry.Version, now time.Time,
) (store func(ctx context.Context) error, err error) {
	if q, found := registry.FindQuarantine(s.Quarantined, v); !found || q.Version != v || q.By != tools.Service {
		return nil, nil
	}
	prior, err := p.Quarantine.PriorStatuses(ctx, s.Name())
	if err != nil {
		return nil, err
	}
	released, err := s.Release(v, prior, now)
	return func(ctx context.Context) error {
		if err := p.Quarantine.Remove(ctx, s.Name(), v, released); err != nil {
			return err
		}
		return s.Save(ctx, p.Writer)
	}, err
}
