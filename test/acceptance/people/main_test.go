// Package people tests the first start, invitations, forgotten passwords and what operators do to
// people.
package people

import (
	"testing"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/openapi"
)

func TestMain(m *testing.M) { openapi.Main(m) }
