package inprocess

import (
	"context"
	"fmt"
	"slices"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/delegating"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

// Granter gives the people of authentication the grants of the registry.
type Granter struct{ operator *delegating.GrantOperator }

var _ authority.Granter = (*Granter)(nil)

// NewGranter returns a Granter.
func NewGranter(o *delegating.GrantOperator) *Granter { return &Granter{o} }

// GiveGrants implements [authority.Granter].
func (g *Granter) GiveGrants(ctx context.Context, userID string, grants []authority.GrantText) error {
	given := make([]registry.Grant, 0, len(grants))
	for i, text := range grants {
		grant, err := registry.ParseGrant(registry.Holder(userID), text.Action, text.Resource)
		if err != nil {
			return fmt.Errorf("grants[%d]: %w", i, err)
		}
		if slices.Contains(given, grant) {
			continue
		}
		given = append(given, grant)
		if err := g.operator.Add(ctx, grant); err != nil {
			return err
		}
	}
	return nil
}
