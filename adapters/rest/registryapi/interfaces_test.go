package registryapi_test

import (
	"github.com/tollgate-dev/tollgate/adapters/rest/registryapi"
	"github.com/tollgate-dev/tollgate/core/registry/browse"
	"github.com/tollgate-dev/tollgate/core/registry/publish"
)

// The use cases implement the interfaces of the handlers.
var (
	_ registryapi.Reader = (*browse.Browser)(nil)
	_ registryapi.Writer = (*publish.Publisher)(nil)
)
