// Package access tests decisions about calls of tool servers as proxies get them over gRPC.
package access

import (
	"testing"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/openapi"
)

func TestMain(m *testing.M) { openapi.Main(m) }
