// Package console tests the pages below /console/ as a browser without JavaScript uses them.
package console

import (
	"testing"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/openapi"
)

func TestMain(m *testing.M) { openapi.Main(m) }
