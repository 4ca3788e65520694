package viewing

import (
	"cmp"
	"context"
	"slices"

	"github.com/tollgate-dev/tollgate/core/registry/view"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

// Known returns the views whose names a caller may know, ordered by name: everybody those that
// everybody may read, and who may read the registry the others, except for those of other people. It
// returns fault.Unavailable when the database fails.
func (g *Gate) Known(ctx context.Context, who authority.Caller) ([]view.View, error) {
	k, err := g.current(ctx)
	if err != nil {
		return nil, err
	}
	reader := who.MayRead() == nil
	var views []view.View
	for _, v := range k.views {
		known := v.Access == view.Public || reader
		if known && v.Access == view.People {
			if known, err = admits(ctx, g.ports.Members, v, who); err != nil {
				return nil, err
			}
		}
		if known {
			views = append(views, *v)
		}
	}
	slices.SortFunc(views, func(a, b view.View) int { return cmp.Compare(a.Name, b.Name) })
	return views, nil
}
