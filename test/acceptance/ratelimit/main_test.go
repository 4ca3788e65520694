// Package ratelimit tests the rate limit service: the Envoy protocol, its rules, listeners and
// counter stores, and the client program.
package ratelimit

import (
	"testing"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/openapi"
)

func TestMain(m *testing.M) { openapi.Main(m) }
