// Package proxies tests decisions about calls of tool servers as proxies ask for them by HTTP.
package proxies

import (
	"testing"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/openapi"
)

func TestMain(m *testing.M) { openapi.Main(m) }
