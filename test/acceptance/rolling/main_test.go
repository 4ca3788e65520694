// Package rolling tests that several instances serve one environment: restarts in turn, upgrades,
// crashes.
package rolling

import (
	"testing"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/openapi"
)

func TestMain(m *testing.M) { openapi.MainOfWaiting(m) }
