// Package operator tests the operator commands and the programs as an operator runs them: accounts,
// grants, export and import, backup, the health command and the files that the service writes.
package operator

import (
	"testing"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/openapi"
)

func TestMain(m *testing.M) { openapi.Main(m) }
