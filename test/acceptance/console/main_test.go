// Package console tests what the pages below /console/ need processes, servers or several instances for. The
// pages themselves are tested in adapters/rest/console.
package console

import (
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/webtest"
	"github.com/tollgate-dev/tollgate/test/acceptance/internal/openapi"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

func TestMain(m *testing.M) { openapi.Main(m) }

// browser is a browser of the pages.
type browser = webtest.Browser

func newBrowser(t *testing.T, s *fixture.Service) *browser {
	t.Helper()
	return webtest.New(t, s.API)
}
