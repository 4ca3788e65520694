// Package eventdata is the port that writes events as the API writes its answers. The core decides
// what an event contains; the adapters of the API know the JSON.
package eventdata

import (
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/event"
	"github.com/tollgate-dev/tollgate/core/registry/review"
)

// Encoder writes JSON. It is safe for concurrent use.
type Encoder interface {
	// Record returns the answer of the API for one version.
	Record(r registry.Record) []byte
	// Changed returns the answer of a change of several versions; without their documents if
	// records is nil. count is the number of versions.
	Changed(records []registry.Record, count int) []byte
	// Review returns the answer of the API for a review.
	Review(s review.Shown) ([]byte, error)
	// Quarantined returns the answer of the API for an entry of quarantine.
	Quarantined(q registry.Quarantined) ([]byte, error)
	// Purge returns the keys that caches must drop.
	Purge(keys []event.Key) ([]byte, error)
	// Event returns the body of the requests that report an event (contract C-52).
	Event(e event.Event) ([]byte, error)
}
