package registryapi_test

import (
	"github.com/tollgate-dev/tollgate/adapters/rest/registryapi"
	"github.com/tollgate-dev/tollgate/core/registry/browsing"
	"github.com/tollgate-dev/tollgate/core/registry/publishing"
)

// The use cases implement the interfaces of the handlers.
var (
	_ registryapi.Reader = (*browsing.Browser)(nil)
	_ registryapi.Writer = (*publishing.Publisher)(nil)
)
