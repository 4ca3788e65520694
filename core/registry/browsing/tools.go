package browsing

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// Tools reads tool lists. It is safe for concurrent use.
type Tools struct{ lists registrystore.ToolLists }

// NewTools returns a reader of tool lists.
func NewTools(lists registrystore.ToolLists) *Tools { return &Tools{lists} }

// Of returns the tool lists of a version, which the caller has read (Browser.Version), so that they are
// as readable as the version. It returns fault.Unavailable when the database is not available.
func (t *Tools) Of(ctx context.Context, version registry.Record) ([]tools.Shown, error) {
	stored, err := t.lists.OfVersion(ctx, version.Name, version.Version)
	return tools.Show(version.Document, stored), err
}
