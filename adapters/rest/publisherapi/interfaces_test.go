package publisherapi_test

import (
	"github.com/tollgate-dev/tollgate/adapters/rest/publisherapi"
	"github.com/tollgate-dev/tollgate/core/registry/policies"
	"github.com/tollgate-dev/tollgate/core/registry/prove"
)

// The use cases implement the interfaces of the handlers.
var (
	_ publisherapi.Prover   = (*prove.Prover)(nil)
	_ publisherapi.Policies = (*policies.Service)(nil)
)
