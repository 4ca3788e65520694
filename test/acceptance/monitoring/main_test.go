// Package monitoring tests what the built service shows an operator: logs, metrics, traces,
// dashboards and alerts.
package monitoring

import (
	"testing"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/openapi"
)

func TestMain(m *testing.M) { openapi.Main(m) }
