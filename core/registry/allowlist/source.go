package allowlist

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/history"
	"github.com/tollgate-dev/tollgate/core/registry/view"
	"github.com/tollgate-dev/tollgate/core/registry/viewreader"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// Source reads the servers of which allow lists are made. It is safe for concurrent use.
type Source struct{ servers registrystore.SnapshotReader }

// NewSource returns a source of the servers that the store has.
func NewSource(servers registrystore.SnapshotReader) *Source { return &Source{servers} }

// In returns a source of the servers of a view.
func (s *Source) In(v view.View) *Source { return &Source{viewreader.New(s.servers, v)} }

// Compile makes the lists of formats of all servers: the latest version of each is allowed, and
// every deleted version denied. It reads the whole registry once. It returns fault.Unavailable when
// the database is not available, and the errors of o.Define.
func (s *Source) Compile(ctx context.Context, o Output, formats ...Format) (*Lists, error) {
	c := NewCompiler(o, formats...)
	err := history.EachVersion(ctx, s.servers, func(r registry.Record) error {
		switch {
		case r.Status == registry.StatusDeleted:
			c.Deny(r)
		case r.Latest:
			return c.Allow(r)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return c.Compile(), nil
}
