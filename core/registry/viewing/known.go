package viewing

import (
	"cmp"
	"context"
	"slices"

	"github.com/tollgate-dev/tollgate/core/registry/view"
)

// Known returns the views whose names a reader may know, ordered by name. It returns
// fault.Unavailable when the database fails.
func (g *Gate) Known(ctx context.Context, signedIn bool) ([]view.View, error) {
	k, err := g.current(ctx)
	if err != nil {
		return nil, err
	}
	var views []view.View
	for _, v := range k.views {
		if v.KnownTo(signedIn) {
			views = append(views, *v)
		}
	}
	slices.SortFunc(views, func(a, b view.View) int { return cmp.Compare(a.Name, b.Name) })
	return views, nil
}
