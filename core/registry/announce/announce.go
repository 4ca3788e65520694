// Package announce records what happens to servers for webhooks, in the transaction of the change
// (contract C-50 to C-54). Package event has the rules; package notifying sends what is recorded.
package announce

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/jsonvalue"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/event"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/eventdata"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/secrets"
)

// Ports are the dependencies of a Recorder. All fields are required.
type Ports struct {
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
type Recorder struct{ ports Ports }

// New returns a recorder.
func New(p Ports) *Recorder { return &Recorder{p} }

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
		drafts[i] = draft{kind: t, name: v.Name, version: v.Version, data: func() ([]byte, error) { return r.ports.Encoder.Record(v), nil }}
	}
	return r.record(ctx, drafts)
}

// RecordServer records that versions of a server, count in all, got another status at once. records
// are empty if their documents are too large for an event.
func (r *Recorder) RecordServer(ctx context.Context, name registry.Name, records []registry.Record, count int) error {
	return r.record(ctx, []draft{{kind: event.Status, name: name, data: func() ([]byte, error) {
		return r.ports.Encoder.Changed(records, count), nil
	}}})
}

// RecordReview records that a review was submitted or decided. Replaced is what it is compared with. Of a tool list, which
// may have megabytes, the event has the signs alone: the API shows it.
func (r *Recorder) RecordReview(ctx context.Context, t event.Type, of review.Review, signs ...review.Sign) error {
	return r.record(ctx, []draft{{kind: t, name: of.Name, version: of.Version, data: func() ([]byte, error) {
		if of.Kind == review.Tools {
			of.Document, of.Replaced = []byte("{}"), nil
		}
		shown, err := of.Show(of.Replaced)
		shown.Signs = append(shown.Signs, signs...)
		if err != nil {
			return nil, err
		}
		return r.ports.Encoder.Review(shown)
	}}})
}

// RecordQuarantined records that something was put in quarantine.
func (r *Recorder) RecordQuarantined(ctx context.Context, q registry.Quarantined) error {
	return r.record(ctx, []draft{
		{kind: event.Quarantined, name: q.Name, version: q.Version, data: func() ([]byte, error) {
			return r.ports.Encoder.Quarantined(q)
		}},
	})
}

// RecordReleased records that a version, or with the zero version a server, was released from
// quarantine. The API answers that without a body, so the event has no data.
func (r *Recorder) RecordReleased(ctx context.Context, name registry.Name, v registry.Version) error {
	return r.record(ctx, []draft{{kind: event.Released, name: name, version: v, data: func() ([]byte, error) { return nil, nil }}})
}

// RecordView records that a view is another one, so that caches drop what was read in it. Webhooks
// that want this want it of all views.
func (r *Recorder) RecordView(ctx context.Context, name string) error {
	return r.record(ctx, []draft{r.purge(registry.Name{}, false, event.ViewKey(name))})
}

// RecordTools records that the tool lists of a server changed, so that caches drop what was read of it.
func (r *Recorder) RecordTools(ctx context.Context, name registry.Name) error {
	return r.record(ctx, []draft{r.purge(name, false, event.ServerKey(name.String()))})
}

// RecordOtherTools records that a remote of a version shows other tools than the approved ones, with how
// they differ.
func (r *Recorder) RecordOtherTools(
	ctx context.Context, name registry.Name, v registry.Version, difference jsonvalue.Object,
) error {
	return r.record(ctx, []draft{{kind: event.Tools, name: name, version: v, data: func() ([]byte, error) {
		return json.Marshal(difference)
	}}})
}

// draft is an event that is recorded if a webhook wants it.
type draft struct {
	kind    event.Type
	name    registry.Name
	version registry.Version
	data    func() ([]byte, error) // called only if a webhook wants the event
	waits   []time.Duration        // from the event to the first attempt of each delivery; empty is one delivery at once
	urgent  bool
}

// purge returns the event that keys are to be purged. After a quarantine that happens at once and
// before everything else, and then again, because another instance may hear of it a second late;
// after another change only then.
func (r *Recorder) purge(name registry.Name, urgent bool, keys ...event.Key) draft {
	d := draft{
		kind: event.Purge, name: name, data: func() ([]byte, error) { return r.ports.Encoder.Purge(keys) },
		waits: []time.Duration{event.PurgeAgain}, urgent: urgent,
	}
	if urgent {
		d.waits = []time.Duration{0, event.PurgeAgain}
	}
	return d
}

// addPurge returns the drafts of one change of a server, after the event with what caches must drop.
func (r *Recorder) addPurge(drafts []draft) []draft {
	i := slices.IndexFunc(drafts, func(d draft) bool { return d.kind.Changes() })
	if i < 0 {
		return drafts
	}
	name := drafts[i].name
	return append([]draft{r.purge(name, drafts[i].kind == event.Quarantined, event.Keys(name)...)}, drafts...)
}

// record records events, in their order, for the webhooks that want them.
func (r *Recorder) record(ctx context.Context, drafts []draft) error {
	webhooks, err := r.ports.Webhooks.List(ctx)
	if err != nil || len(webhooks) == 0 {
		return err
	}
	now := r.ports.Clock.Now().UTC().Truncate(time.Microsecond)
	var list []event.Delivery
	for _, d := range r.addPurge(drafts) {
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
			list = append(list, d.deliveries(event.NewDelivery(w.ID, e, body))...)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return r.ports.Deliveries.Add(ctx, list)
}

// deliveries returns the deliveries of the event to one webhook.
func (d *draft) deliveries(one event.Delivery) (all []event.Delivery) {
	if len(d.waits) == 0 {
		return []event.Delivery{one}
	}
	one.Urgent = d.urgent
	for _, wait := range d.waits {
		all = append(all, one.At(one.Since.Add(wait)))
	}
	return all
}
