// Package eventjson writes events as JSON (contract C-52). What an event contains are answers of the
// API, which the parts of the API write.
package eventjson

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/wire"

	"github.com/tollgate-dev/tollgate/adapters/rest/curationapi"
	"github.com/tollgate-dev/tollgate/adapters/rest/registryapi"
	"github.com/tollgate-dev/tollgate/adapters/rest/reviewapi"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/event"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/ports/eventdata"
)

// Set provides the encoder.
var Set = wire.NewSet(wire.Value(Encoder{}), wire.Bind(new(eventdata.Encoder), new(Encoder)))

// Encoder implements [eventdata.Encoder].
type Encoder struct{}

var _ eventdata.Encoder = Encoder{}

// Record implements [eventdata.Encoder].
func (Encoder) Record(r registry.Record) []byte { return registryapi.RecordJSON(r) }

// Changed implements [eventdata.Encoder]. Without documents it has the count alone.
func (Encoder) Changed(records []registry.Record, count int) []byte {
	if len(records) < count {
		return fmt.Appendf(nil, `{"updatedCount":%d}`, count)
	}
	return registryapi.ChangedJSON(records)
}

// Review implements [eventdata.Encoder].
func (Encoder) Review(s review.Shown) ([]byte, error) { return reviewapi.ReviewJSON(&s) }

// Quarantined implements [eventdata.Encoder].
func (Encoder) Quarantined(q registry.Quarantined) ([]byte, error) {
	return curationapi.QuarantinedJSON(q)
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
	b, err := json.Marshal(head{e.ID, e.Type, formatTime(e.Time), textOrNull(e.Name.String()), textOrNull(e.Version.String())})
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

// formatTime returns a time as the registry writes times (contract R-2).
func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

// textOrNull returns nil for the empty text.
func textOrNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
