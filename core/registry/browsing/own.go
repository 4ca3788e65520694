package browsing

import (
	"context"
	"slices"
	"strconv"

	"github.com/tollgate-dev/tollgate/core/page"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/view"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// Own finds the servers that a person may change. It is safe for concurrent use.
type Own struct {
	servers *Browser
	grants  registrystore.Grants
}

// NewOwn returns an Own.
func NewOwn(servers registrystore.SnapshotReader, cursors *page.Sealer, g registrystore.Grants) *Own {
	return &Own{New(servers, cursors), g}
}

// ownView is the name of the view of one's own servers in cursors. No view of an operator has it.
const ownView = "own servers"

// List returns a page of the latest versions, deleted ones too, of the servers for which a person has
// a grant to publish or edit. It returns fault.Invalid for a cursor of another list.
func (o *Own) List(ctx context.Context, person registry.Holder, cursor string) (Page, error) {
	grants, err := o.grants.Of(ctx, person)
	if err != nil {
		return Page{}, err
	}
	of := view.View{Name: ownView, Deprecated: view.Show}
	of.Include = changeable(grants)
	if len(of.Include) == 0 { // which would be all servers
		return Page{}, nil
	}
	return o.servers.In(of).List(ctx, Query{
		Cursor: cursor, Version: registry.LatestAlias, IncludeDeleted: "true", Limit: strconv.Itoa(page.DefaultLimit),
	})
}

// changeable returns the patterns of the servers that a person with these grants may change.
func changeable(grants []registry.Grant) (all []registry.Pattern) {
	for _, g := range grants {
		if (g.Action == registry.ActionPublish || g.Action == registry.ActionEdit) && !slices.Contains(all, g.Pattern) {
			all = append(all, g.Pattern)
		}
	}
	return all
}
