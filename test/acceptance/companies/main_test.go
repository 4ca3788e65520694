// Package companies tests company sign-in: providers, what is refused, and whose account it is.
package companies

import (
	"testing"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/openapi"
)

func TestMain(m *testing.M) { openapi.Main(m) }
