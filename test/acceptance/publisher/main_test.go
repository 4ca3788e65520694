// Package publisher tests the commands that a publisher runs, through pipes and at a terminal.
package publisher

import (
	"testing"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/openapi"
)

func TestMain(m *testing.M) { openapi.MainOfWaiting(m) }
