// Package tokens tests the tokens of people and of service accounts.
package tokens

import (
	"testing"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/fixture"
)

func TestMain(m *testing.M) { fixture.Main(m) }
