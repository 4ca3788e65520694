// Package mirroring tests how a registry takes over the servers of another one (contract C-60 to
// C-70).
package mirroring

import (
	"testing"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/openapi"
)

func TestMain(m *testing.M) { openapi.MainOfWaiting(m) }
