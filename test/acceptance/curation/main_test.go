// Package curation tests what an organisation does with a registry besides publishing: review,
// quarantine and views.
package curation

import (
	"testing"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/openapi"
)

func TestMain(m *testing.M) { openapi.Main(m) }
