// Package tools tests the tool lists of versions, first against those who attack them: who has a
// stolen password but no second factor, a publisher who wants a changed list to count as approved, who
// has a token for something else, a cache between the service and its callers, and a page of another
// site (contract W-1 to W-5).
package tools

import (
	"testing"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/openapi"
)

func TestMain(m *testing.M) { openapi.Main(m) }
