package notifying

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/event"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/eventdata"
	"github.com/tollgate-dev/tollgate/ports/eventsender"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// OperatorPorts are the dependencies of an Operator. All fields are required.
type OperatorPorts struct {
	Transactions transaction.Runner
	Webhooks     registrystore.Webhooks
	Deliveries   registrystore.Deliveries
	Recorder     authority.Recorder
	Sealer       secrets.Sealer
	Sender       eventsender.Sender
	Encoder      eventdata.Encoder
	Clock        clock.Clock
	Entropy      secrets.Entropy
}

// Operator adds, lists, tests and removes webhooks for operator commands. Each method returns
// fault.Unavailable when the database fails. It is safe for concurrent use.
type Operator struct{ ports OperatorPorts }

// NewOperator returns an operator.
func NewOperator(p OperatorPorts) *Operator { return &Operator{p} }

// SealedSecret returns what a sealed secret of a webhook is about: it opens for that webhook only.
func SealedSecret(id event.WebhookID) string { return "webhook " + string(id) }

// Add adds a webhook, which receives what happens from then on, and returns it with its secret,
// which cannot be read again. It returns fault.Invalid, with the name of the parameter, for a wrong
// one, and fault.Conflict when there are too many webhooks.
func (o *Operator) Add(ctx context.Context, d event.Draft) (event.Webhook, event.Secret, error) {
	w, err := event.New(d)
	if err != nil {
		return event.Webhook{}, "", err
	}
	if err := o.ports.Sender.Check(w.URL); err != nil {
		return event.Webhook{}, "", err
	}
	w.ID, w.CreatedAt = secrets.NewUUID[event.WebhookID](o.ports.Entropy), o.now()
	var random [32]byte
	o.ports.Entropy.Fill(random[:])
	secret := event.NewSecret(random)
	if w.Secret, err = o.ports.Sealer.Seal([]byte(secret), SealedSecret(w.ID)); err != nil {
		return event.Webhook{}, "", fmt.Errorf("seal the secret of a webhook: %w", err)
	}
	err = o.ports.Transactions.Atomically(ctx, func(ctx context.Context) error {
		existing, err := o.ports.Webhooks.List(ctx)
		if err != nil {
			return err
		}
		if len(existing) >= event.MaxWebhooks {
			return fault.Newf(fault.Conflict, "there are %d webhooks already: remove some", len(existing))
		}
		if err := o.ports.Webhooks.Add(ctx, w); err != nil {
			return err
		}
		return o.record(ctx, "webhook_add", w, "")
	})
	if err != nil {
		return event.Webhook{}, "", err
	}
	return w, secret, nil
}

// Listed is a webhook with what became of its deliveries.
type Listed struct {
	event.Webhook
	event.Condition
}

// List returns all webhooks, the oldest first.
func (o *Operator) List(ctx context.Context) ([]Listed, error) {
	webhooks, err := o.ports.Webhooks.List(ctx)
	if err != nil {
		return nil, err
	}
	conditions, err := o.ports.Webhooks.Conditions(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]Listed, len(webhooks))
	for i, w := range webhooks {
		list[i] = Listed{w, conditions[w.ID]}
	}
	return list, nil
}

// Test sends a signed event of the type test to a webhook, once and at once, and returns the status
// of the response. It returns fault.NotFound if there is no webhook with the ID, and
// fault.Unavailable, with a clause that says why, if there was no response.
func (o *Operator) Test(ctx context.Context, id event.WebhookID) (int, error) {
	w, err := o.find(ctx, id)
	if err != nil {
		return 0, err
	}
	secret, err := o.ports.Sealer.Open(w.Secret, SealedSecret(w.ID))
	if err != nil {
		return 0, fmt.Errorf("the secret of webhook %s: %w", w.ID, err)
	}
	now := o.now()
	body, err := o.ports.Encoder.Event(event.Event{
		ID: secrets.NewUUID[event.ID](o.ports.Entropy), Type: event.Test, Time: now,
	})
	if err != nil {
		return 0, err
	}
	return o.ports.Sender.Send(ctx, eventsender.Request{
		URL: w.URL, Body: body, Signature: event.Sign(event.Secret(secret), now, body),
	})
}

// Remove removes a webhook with what was not delivered to it. It returns fault.NotFound if there is
// none with the ID.
func (o *Operator) Remove(ctx context.Context, id event.WebhookID) error {
	return o.ports.Transactions.Atomically(ctx, func(ctx context.Context) error {
		w, err := o.find(ctx, id)
		if err != nil {
			return err
		}
		if err := o.ports.Webhooks.Remove(ctx, id); err != nil {
			return err
		}
		return o.record(ctx, "webhook_remove", w, "")
	})
}

// Redeliver has events delivered again and returns how many: all dead ones of a webhook, or with an
// event that one, delivered or not. It returns fault.NotFound if there is no webhook with the ID,
// or the event is not kept for it.
func (o *Operator) Redeliver(ctx context.Context, id event.WebhookID, of event.ID) (n int, err error) {
	err = o.ports.Transactions.Atomically(ctx, func(ctx context.Context) error {
		w, err := o.find(ctx, id)
		if err != nil {
			return err
		}
		if n, err = o.ports.Deliveries.Redeliver(ctx, id, of, o.now()); err != nil {
			return err
		}
		if n == 0 && of != "" {
			return fault.New(fault.NotFound,
				"the event is not kept for this webhook: it was not sent to it, or too long ago")
		}
		return o.record(ctx, "webhook_redeliver", w, of)
	})
	return n, err
}

// find returns a webhook, or fault.NotFound.
func (o *Operator) find(ctx context.Context, id event.WebhookID) (event.Webhook, error) {
	all, err := o.ports.Webhooks.List(ctx)
	if err != nil {
		return event.Webhook{}, err
	}
	i := slices.IndexFunc(all, func(w event.Webhook) bool { return w.ID == id })
	if i < 0 {
		return event.Webhook{}, fault.New(fault.NotFound, "there is no webhook with this id")
	}
	return all[i], nil
}

// record records a change of a webhook in the audit log, without its secret. of is the event that
// is delivered again; otherwise empty or all.
func (o *Operator) record(ctx context.Context, action audit.Action, w event.Webhook, of event.ID) error {
	details := audit.Details{"webhook": audit.Text(w.ID), "host": audit.Text(w.URL.Host())}
	details.Set("event", string(of))
	return o.ports.Recorder.RecordChanges(ctx, registry.NewOperatorChange(action, details))
}

func (o *Operator) now() time.Time { return o.ports.Clock.Now().UTC().Truncate(time.Microsecond) }
