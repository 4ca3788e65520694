// Package plugins tests the service with its plugins: couriers of codes and notices, and package
// registries.
package plugins

import (
	"testing"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/openapi"
)

func TestMain(m *testing.M) { openapi.Main(m) }
