package allowlist

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/browse"
	"github.com/tollgate-dev/tollgate/core/registry/view"
	"github.com/tollgate-dev/tollgate/core/registry/views"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// Lists makes the allow lists of the registry. It is safe for concurrent use.
type Lists struct{ servers registrystore.ServerReader }

// New returns the lists of the servers that the store has.
func New(servers registrystore.ServerReader) *Lists { return &Lists{servers} }

// In returns the lists of the servers of a view.
func (l *Lists) In(v view.View) *Lists { return &Lists{views.NewReader(l.servers, v)} }

// Compile returns the allow list of all servers: the latest version of each is allowed, and every
// deleted version denied. It reads the whole registry. It returns fault.Unavailable when the
// database is not available.
func (l *Lists) Compile(ctx context.Context, f Format) (List, error) {
	c := NewCompiler(f)
	err := browse.EachVersion(ctx, l.servers, func(r registry.Record) error {
		switch {
		case r.Status == registry.StatusDeleted:
			c.Deny(r)
		case r.Latest:
			c.Allow(r)
		}
		return nil
	})
	if err != nil {
		return List{}, err
	}
	return c.Compile(), nil
}
