// Package administration tests the administration API as an operator uses it: each subject, the order
// of the checks of a request, conditions, secrets, and what the audit log says.
package administration

import (
	"testing"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/openapi"
)

func TestMain(m *testing.M) { openapi.Main(m) }
