// Package authentication tests sign-in, sessions, devices, step-up, second factors, risk and the
// audit log of the built service.
package authentication

import (
	"testing"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/openapi"
)

func TestMain(m *testing.M) { openapi.Main(m) }
