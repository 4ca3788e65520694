// Package httpapi tests what all parts of the HTTP API share: its description, TLS, headers,
// limits, health and robustness against malformed requests.
package httpapi

import (
	"testing"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/openapi"
)

func TestMain(m *testing.M) { openapi.Main(m) }
