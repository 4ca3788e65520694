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

// CheckGrant implements [authority.Granter].
func (g *Granter) CheckGrant(text authority.GrantText) error {
	_, err := registry.ParseGrant("", text.Action, text.Resource)
	return err
}

// ReplaceGrants implements [authority.Granter].
func (g *Granter) ReplaceGrants(
	ctx context.Context, userID, origin string, grants []authority.GrantText,
) (done authority.GrantChanges, err error) {
	wanted := make([]registry.Grant, len(grants))
	for i, text := range grants {
		if wanted[i], err = registry.ParseGrant(registry.Holder(userID), text.Action, text.Resource); err != nil {
			return done, err
		}
	}
	replaced, err := g.operator.Replace(ctx, registry.Holder(userID), origin, wanted)
	return authority.GrantChanges{
		Added: textsOf(replaced.Added), Removed: textsOf(replaced.Removed), KeptOperator: replaced.KeptOperator,
	}, err
}

func textsOf(grants []registry.Grant) (texts []authority.GrantText) {
	for _, g := range grants {
		texts = append(texts, authority.GrantText{Action: string(g.Action), Resource: g.Pattern.String()})
	}
	return texts
}

// RemoveOrigin implements [authority.Granter].
func (g *Granter) RemoveOrigin(ctx context.Context, origin string) error {
	return g.operator.RemoveOrigin(ctx, origin)
}

// Operators implements [authority.Granter].
func (g *Granter) Operators(ctx context.Context) ([]string, error) { return g.operator.Operators(ctx) }

// MayOperate implements [authority.Granter].
func (g *Granter) MayOperate(ctx context.Context, userID string) (bool, error) {
	return g.operator.MayOperate(ctx, registry.Holder(userID))
}
