// Package notifying holds the use cases of events: what happens to servers is recorded for webhooks
// in the transaction of the change, operators keep the webhooks, and a Runner sends: one instance
// at a time to a webhook, in order for each server, again after a failure, and at least once
// (contract C-50 to C-57). Package event has the rules.
package notifying

import (
	"context"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/event"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/eventdata"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/secrets"
)

// RecorderPorts are the dependencies of a Recorder. All fields are required.
type RecorderPorts struct {
	Webhooks   registrystore.Webhooks
	Deliveries registrystore.Deliveries
	Encoder    eventdata.Encoder
	Clock      clock.Clock
	Entropy    secrets.Entropy
}

// Recorder records events for the webhooks that want them. Its methods must be called in the
// transaction of the change, after ServerWriter.Lock of the server, so that events of one server
// have the order of its changes. They return the errors of the database. They are safe for
// concurrent use.
type Recorder struct{ ports RecorderPorts }

// NewRecorder returns a recorder.
func NewRecorder(p RecorderPorts) *Recorder { return &Recorder{p} }

// TypeOf returns the type of the event of a document that is served, by the kind of its submission.
func TypeOf(k review.Kind) event.Type {
	if k == review.Replacement {
		return event.Replaced
	}
	return event.Published
}

// RecordVersions records an event of a type for each of the versions of one server, with the
// version as readers see it now.
func (r *Recorder) RecordVersions(ctx context.Context, t event.Type, versions ...registry.Record) error {
	if len(versions) == 0 {
		return nil
	}
	drafts := make([]draft, len(versions))
	for i, v := range versions {
		drafts[i] = draft{t, v.Name, v.Version, func() ([]byte, error) { return r.ports.Encoder.Record(v), nil }}
	}
	return r.record(ctx, drafts)
}

// RecordServer records that versions of a server, count in all, got another status at once. records
// are empty if their documents are too large for an event.
func (r *Recorder) RecordServer(ctx context.Context, name registry.Name, records []registry.Record, count int) error {
	return r.record(ctx, []draft{{event.Status, name, registry.Version{}, func() ([]byte, error) {
		return r.ports.Encoder.Changed(records, count), nil
	}}})
}

// RecordReview records the decision of a review.
func (r *Recorder) RecordReview(ctx context.Context, t event.Type, decided review.Review) error {
	return r.record(ctx, []draft{{t, decided.Name, decided.Version, func() ([]byte, error) {
		shown, err := decided.Show(decided.Replaced)
		if err != nil {
			return nil, err
		}
		return r.ports.Encoder.Review(shown)
	}}})
}

// RecordQuarantined records that something was put in quarantine.
func (r *Recorder) RecordQuarantined(ctx context.Context, q registry.Quarantined) error {
	return r.record(ctx, []draft{
		{event.Quarantined, q.Name, q.Version, func() ([]byte, error) { return r.ports.Encoder.Quarantined(q) }},
	})
}

// RecordReleased records that a version, or with the zero version a server, was released from
// quarantine. The API answers that without a body, so the event has no data.
func (r *Recorder) RecordReleased(ctx context.Context, name registry.Name, v registry.Version) error {
	return r.record(ctx, []draft{{event.Released, name, v, func() ([]byte, error) { return nil, nil }}})
}

// draft is an event that is recorded if a webhook wants it.
type draft struct {
	kind    event.Type
	name    registry.Name
	version registry.Version
	data    func() ([]byte, error) // called only if a webhook wants the event
}

// record records events, in their order, for the webhooks that want them.
func (r *Recorder) record(ctx context.Context, drafts []draft) error {
	webhooks, err := r.ports.Webhooks.List(ctx)
	if err != nil || len(webhooks) == 0 {
		return err
	}
	now := r.ports.Clock.Now().UTC().Truncate(time.Microsecond)
	var list []event.Delivery
	for _, d := range drafts {
		wanting := slices.DeleteFunc(slices.Clone(webhooks), func(w event.Webhook) bool {
			return !w.Wants(d.kind, d.name)
		})
		if len(wanting) == 0 {
			continue
		}
		data, err := d.data()
		if err != nil {
			return err
		}
		e := event.Event{
			ID: secrets.NewUUID[event.ID](r.ports.Entropy), Type: d.kind, Time: now, Name: d.name,
			Version: d.version, Data: data,
		}
		body, err := r.ports.Encoder.Event(e)
		if err != nil {
			return err
		}
		for _, w := range wanting {
			list = append(list, event.NewDelivery(w.ID, e, body))
		}
	}
	if len(list) == 0 {
		return nil
	}
	return r.ports.Deliveries.Add(ctx, list)
}
