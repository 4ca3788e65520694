// Package people tests the first start, invitations, forgotten passwords and what operators do to
// people.
package people

import (
	"testing"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/fixture"
)

func TestMain(m *testing.M) { fixture.Main(m) }
