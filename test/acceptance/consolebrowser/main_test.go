// Package consolebrowser tests the console in a real browser: by keyboard alone, with axe-core on
// each page, and for what the browser's console complains about. Package console tests the pages
// over the wire.
//
// TEST_AXE is the file axe.min.js of axe-core. TEST_PICTURES is a folder for screenshots of all
// pages.
package consolebrowser

import (
	"testing"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/openapi"
)

func TestMain(m *testing.M) { openapi.Main(m) }
