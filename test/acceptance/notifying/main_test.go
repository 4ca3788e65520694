// Package notifying tests how events reach webhooks (contract C-50 to C-57).
package notifying

import (
	"testing"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/openapi"
)

func TestMain(m *testing.M) { openapi.MainOfWaiting(m) }
