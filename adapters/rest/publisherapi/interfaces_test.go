package publisherapi_test

import (
	"github.com/tollgate-dev/tollgate/adapters/rest/publisherapi"
	"github.com/tollgate-dev/tollgate/core/registry/delegating"
)

// The use cases implement the interfaces of the handlers.
var (
	_ publisherapi.Prover   = (*delegating.Prover)(nil)
	_ publisherapi.Policies = (*delegating.Service)(nil)
)
