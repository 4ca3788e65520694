// Package registry tests the registry of tool servers: publishing, reading, grants, and writes in
// parallel.
package registry

import (
	"testing"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/openapi"
)

func TestMain(m *testing.M) { openapi.Main(m) }
