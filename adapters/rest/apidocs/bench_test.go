package apidocs_test

import (
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/rest/apidocs"
)

// BenchmarkNew measures what the description adds to a start of the service.
func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		if _, err := apidocs.New(); err != nil {
			b.Fatal(err)
		}
	}
}
