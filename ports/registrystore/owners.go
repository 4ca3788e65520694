package registrystore

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/registry"
)

// Owners stores who answers for servers. It is safe for concurrent use. Its methods return fault.Unavailable
// when the database is not available.
type Owners interface {
	// Of returns the owner of a server, or the zero value.
	Of(ctx context.Context, name registry.Name) (registry.Owner, error)
	// All returns the owners of all servers that have one, by the names of the servers.
	All(ctx context.Context) (map[string]registry.Owner, error)
	// Set stores the owner of a server that is there, in the transaction that the context carries, if any; the
	// zero value removes it. Of two at once the last one stays.
	Set(ctx context.Context, name registry.Name, o registry.Owner) error
}
