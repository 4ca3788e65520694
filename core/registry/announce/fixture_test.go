package announce_test

import (
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/announce"
	"github.com/tollgate-dev/tollgate/core/registry/event"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/eventdata/eventdatatest"
	"github.com/tollgate-dev/tollgate/ports/secrets/secretstest"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

// epoch has more digits than the microseconds that are kept.
var (
	epoch = time.Date(2026, 11, 23, 12, 0, 0, 123456789, time.FixedZone("east", 3600))
	kept  = time.Date(2026, 11, 23, 11, 0, 0, 123456000, time.UTC)
)

var errAway = fault.New(fault.Unavailable, "the database is away")

// encoder counts the data that it writes, and adds the ID and the time to the text of an event.
type encoder struct {
	eventdatatest.Encoder

	written int
	fails   error // of Event
}

func (e *encoder) Record(r registry.Record) []byte {
	e.written++
	return e.Encoder.Record(r)
}

func (e *encoder) Event(v event.Event) ([]byte, error) {
	if e.fails != nil {
		return nil, e.fails
	}
	body, err := e.Encoder.Event(v)
	return append(body, " "+string(v.ID)+" "+v.Time.Format(time.RFC3339Nano)...), err
}

// fixture is a recorder with a store in memory.
type fixture struct {
	*announce.Recorder

	t          *testing.T
	webhooks   *fakedb.Webhooks
	deliveries *fakedb.Deliveries
	clock      *clocktest.Manual
	encoder    *encoder
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	db := fakedb.New()
	fx := &fixture{
		t: t, webhooks: fakedb.NewWebhooks(db), deliveries: fakedb.NewDeliveries(db), clock: clocktest.NewManual(epoch),
		encoder: &encoder{},
	}
	fx.Recorder = announce.New(announce.Ports{
		Webhooks: fx.webhooks, Deliveries: fx.deliveries, Encoder: fx.encoder, Clock: fx.clock, Entropy: &secretstest.Entropy{},
	})
	return fx
}

// draft returns the parameters of a webhook.
func draft(pattern string, types ...string) event.Draft {
	return event.Draft{URL: "https://example.com/secret-path", Events: types, Pattern: pattern}
}

// addWebhook stores a webhook with an ID.
func (fx *fixture) addWebhook(id event.WebhookID, d event.Draft) {
	fx.t.Helper()
	w, err := event.New(d)
	must.Succeed(fx.t, err)
	w.ID, w.CreatedAt = id, fx.clock.Now()
	must.Succeed(fx.t, fx.webhooks.Put(fx.t.Context(), w))
}

// due returns the deliveries to a webhook that wait for nothing.
func (fx *fixture) due(id event.WebhookID) []event.Delivery {
	fx.t.Helper()
	return fx.dueAt(id, fx.clock.Now())
}

func (fx *fixture) dueAt(id event.WebhookID, now time.Time) []event.Delivery {
	fx.t.Helper()
	due, err := fx.deliveries.Due(fx.t.Context(), id, now, 100)
	must.Succeed(fx.t, err)
	return due
}

func newName(t *testing.T, text string) registry.Name {
	t.Helper()
	name, err := registry.ParseName(text)
	must.Succeed(t, err)
	return name
}

func newVersion(t *testing.T, text string) registry.Version {
	t.Helper()
	v, err := registry.ParseVersion(text)
	must.Succeed(t, err)
	return v
}

// newRecord returns an active version with the document {}.
func newRecord(t *testing.T, name, version string) registry.Record {
	t.Helper()
	return registry.Record{
		Release: registry.Release{
			Name: newName(t, name), Version: newVersion(t, version), Status: registry.StatusActive,
		},
		Document: []byte("{}"),
	}
}
