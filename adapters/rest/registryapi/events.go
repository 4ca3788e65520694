package registryapi

import (
	"encoding/json"
	"fmt"

	"github.com/google/wire"

	"github.com/tollgate-dev/tollgate/adapters/internal/jsonstring"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/event"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/ports/eventdata"
)

// EventSet provides the encoder of events.
var EventSet = wire.NewSet(wire.InterfaceValue(new(eventdata.Encoder), Encoder{}))

// Encoder writes events as JSON (contract C-52). What an event contains is an answer of the API.
type Encoder struct{}

var _ eventdata.Encoder = Encoder{}

// Record implements [eventdata.Encoder].
func (Encoder) Record(r registry.Record) []byte { return appendRecord(nil, &r) }

// Changed implements [eventdata.Encoder]. Without documents it has the count alone.
func (Encoder) Changed(records []registry.Record, count int) []byte {
	if len(records) < count {
		return fmt.Appendf(nil, `{"updatedCount":%d}`, count)
	}
	return appendChanged(nil, records)
}

// Review implements [eventdata.Encoder].
func (Encoder) Review(s review.Shown) ([]byte, error) {
	return encodeRecord(newReviewResponse(&s, nil), "a review")
}

// Quarantined implements [eventdata.Encoder].
func (Encoder) Quarantined(q registry.Quarantined) ([]byte, error) {
	return encodeRecord(newQuarantined(q), "an entry of quarantine")
}

// Purge implements [eventdata.Encoder].
func (Encoder) Purge(keys []event.Key) ([]byte, error) {
	return encodeRecord(purgeData{keys}, "the keys of a purge")
}

// purgeData is the data of an event that caches must drop responses.
type purgeData struct {
	Keys []event.Key `json:"keys"`
}

// head is an event without its data.
type head struct {
	ID         event.ID   `json:"id"`
	Type       event.Type `json:"type"`
	Time       string     `json:"time"`
	ServerName *string    `json:"serverName"` // null for a test
	Version    *string    `json:"version"`    // null for a whole server, and for a test
}

// Event implements [eventdata.Encoder]. The data is in the body byte for byte, which marshalling it
// would not preserve.
func (Encoder) Event(e event.Event) ([]byte, error) {
	b, err := json.Marshal(head{
		e.ID, e.Type, jsonstring.FormatTime(e.Time), jsonstring.TextOrNull(e.Name.String()), jsonstring.TextOrNull(e.Version.String()),
	})
	if err != nil {
		return nil, fmt.Errorf("write an event as JSON: %w", err)
	}
	data := e.Data
	if data == nil {
		data = []byte("null")
	}
	b = append(b[:len(b)-len("}")], `,"data":`...)
	b = append(b, data...)
	return append(b, '}'), nil
}
