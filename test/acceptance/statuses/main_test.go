// Package statuses compares what every route answers every kind of caller with a table in testdata:
// the status, the error, and what the audit log has of it.
package statuses

import (
	"testing"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/openapi"
)

func TestMain(m *testing.M) { openapi.Main(m) }
