package notifying_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/announce"
	"github.com/tollgate-dev/tollgate/core/registry/event"
	"github.com/tollgate-dev/tollgate/core/registry/notifying"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/eventdata/eventdatatest"
	"github.com/tollgate-dev/tollgate/ports/eventsender"
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

// plainSealer seals nothing, and opens only what was sealed about the same.
type plainSealer struct{ fails error }

func (s *plainSealer) Seal(secret []byte, about string) ([]byte, error) {
	return append([]byte(about+"|"), secret...), s.fails
}

func (s *plainSealer) Open(sealed []byte, about string) ([]byte, error) {
	secret, found := strings.CutPrefix(string(sealed), about+"|")
	if !found {
		return nil, errors.New("it was sealed about another one")
	}
	return []byte(secret), s.fails
}

// sender keeps what it is given.
type sender struct {
	refuses error // of Check
	fails   error // of Send
	status  int
	sent    []eventsender.Request
}

func (s *sender) Check(context.Context, event.URL) error { return s.refuses }

func (s *sender) Send(_ context.Context, r eventsender.Request) (int, error) {
	s.sent = append(s.sent, r)
	return s.status, s.fails
}

// auditLog keeps what was recorded, and fails.
type auditLog struct {
	changes []audit.Change
	fails   error
}

func (a *auditLog) RecordChanges(_ context.Context, changes ...audit.Change) error {
	a.changes = append(a.changes, changes...)
	return a.fails
}

// fixture is a recorder and an operator with a store in memory.
type fixture struct {
	*announce.Recorder
	*notifying.Operator

	t          *testing.T
	webhooks   *fakedb.Webhooks
	deliveries *fakedb.Deliveries
	clock      *clocktest.Manual
	encoder    *encoder
	sealer     *plainSealer
	sender     *sender
	audit      *auditLog
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	db := fakedb.New()
	fx := &fixture{
		t: t, webhooks: fakedb.NewWebhooks(db), deliveries: fakedb.NewDeliveries(db), clock: clocktest.NewManual(epoch),
		encoder: &encoder{}, sealer: &plainSealer{}, sender: &sender{status: 204}, audit: &auditLog{},
	}
	entropy := &secretstest.Entropy{}
	fx.Recorder = announce.New(announce.Ports{
		Webhooks: fx.webhooks, Deliveries: fx.deliveries, Encoder: fx.encoder, Clock: fx.clock, Entropy: entropy,
	})
	fx.Operator = notifying.NewOperator(notifying.OperatorPorts{
		Transactions: db, Webhooks: fx.webhooks, Deliveries: fx.deliveries, Recorder: fx.audit, Sealer: fx.sealer,
		Sender:  fx.sender,
		Encoder: fx.encoder, Clock: fx.clock, Entropy: entropy,
	})
	return fx
}

// draft returns the parameters of a webhook.
func draft(pattern string, types ...string) event.Draft {
	return event.Draft{URL: "https://example.com/secret-path", Events: types, Pattern: pattern}
}

// mustAdd adds a webhook as an operator does.
func (fx *fixture) mustAdd(d event.Draft) (event.Webhook, event.Secret) {
	fx.t.Helper()
	w, secret, err := fx.Add(fx.t.Context(), d)
	must.Succeed(fx.t, err)
	return w, secret
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

// wantAudit checks what is in the audit log.
func (fx *fixture) wantAudit(want ...audit.Change) {
	fx.t.Helper()
	if !reflect.DeepEqual(fx.audit.changes, want) {
		fx.t.Errorf("the audit log has %+v, want %+v", fx.audit.changes, want)
	}
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
