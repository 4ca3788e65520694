// Package eventdatatest has an encoder for tests of use cases, and reads the events that they have
// recorded.
package eventdatatest

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/event"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/ports/eventdata"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// Encoder writes events as short texts: the type, the server, "@" and the version, and the data.
type Encoder struct{}

var _ eventdata.Encoder = Encoder{}

// Record returns the status and the document of a version.
func (Encoder) Record(r registry.Record) []byte {
	return []byte(string(r.Status) + " " + string(r.Document))
}

// Changed returns the number of versions, and of those with a document.
func (Encoder) Changed(records []registry.Record, count int) []byte {
	return []byte(strconv.Itoa(count) + " versions, " + strconv.Itoa(len(records)) + " documents")
}

// Review returns the state of a review.
func (Encoder) Review(s review.Shown) ([]byte, error) { return []byte(s.State), nil }

// Quarantined returns the reason of an entry.
func (Encoder) Quarantined(q registry.Quarantined) ([]byte, error) { return []byte(q.Reason), nil }

// Purge returns the keys.
func (Encoder) Purge(keys []event.Key) ([]byte, error) { return fmt.Append(nil, keys), nil }

// Event returns the text of an event.
func (Encoder) Event(e event.Event) ([]byte, error) {
	return []byte(string(e.Type) + " " + e.Name.String() + "@" + e.Version.String() + " " + string(e.Data)), nil
}

// AddWebhook adds a webhook that wants every event of what happens to servers.
func AddWebhook(t testing.TB, w registrystore.Webhooks) {
	t.Helper()
	all := make([]string, 0, len(event.Types()))
	for _, kind := range event.Types() {
		if kind != event.Purge {
			all = append(all, string(kind))
		}
	}
	hook, err := event.New(event.Draft{URL: "https://example.com", Events: all})
	if err != nil {
		t.Fatal(err)
	}
	hook.ID = "all"
	if err := w.Put(t.Context(), hook); err != nil {
		t.Fatal(err)
	}
}

// Take returns the bodies of the events for the webhook of AddWebhook that were not taken before,
// in their order for each server.
func Take(t testing.TB, d registrystore.Deliveries) (bodies []string) {
	t.Helper()
	const many = 1000
	never := time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	for {
		due, err := d.Due(t.Context(), "all", never, many)
		if err != nil {
			t.Fatal(err)
		}
		if len(due) == 0 {
			return bodies
		}
		for _, one := range due {
			bodies = append(bodies, string(one.Body))
			if err := d.Update(t.Context(), one.Succeed(never), never); err != nil {
				t.Fatal(err)
			}
		}
	}
}
