package notifying

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/each"
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
// one or when there are too many webhooks.
func (o *Operator) Add(ctx context.Context, d event.Draft) (event.Webhook, event.Secret, error) {
	w, err := event.New(d)
	if err == nil {
		err = o.ports.Sender.Check(ctx, w.URL)
	}
	if err != nil {
		return event.Webhook{}, "", err
	}
	w.ID, w.CreatedAt = secrets.NewUUID[event.WebhookID](o.ports.Entropy), o.now()
	var random [32]byte
	o.ports.Entropy.Fill(random[:])
	secret := cmp.Or(d.Secret, event.NewSecret(random))
	if err := o.seal(&w, secret); err != nil {
		return event.Webhook{}, "", err
	}
	err = o.ports.Transactions.Atomically(transaction.Exclusive(ctx), func(ctx context.Context) error {
		existing, err := o.ports.Webhooks.List(ctx)
		if err != nil {
			return err
		}
		if len(existing) >= event.MaxWebhooks {
			return fault.Violated("there are %d webhooks already: remove some", len(existing))
		}
		if err := o.ports.Webhooks.Put(ctx, w); err != nil {
			return err
		}
		return o.record(ctx, "webhook_add", w, audit.About(audit.Details{}, w.Object()))
	})
	if err != nil {
		return event.Webhook{}, "", err
	}
	return w, secret, nil
}

// seal gives a webhook a secret.
func (o *Operator) seal(w *event.Webhook, s event.Secret) (err error) {
	if w.Secret, err = o.ports.Sealer.Seal([]byte(s), SealedSecret(w.ID)); err != nil {
		return fmt.Errorf("seal the secret of a webhook: %w", err)
	}
	return nil
}

// Change changes a webhook, whose ID and deliveries stay, and its secret unless the draft has one:
// change returns the new draft for the stored one. A new URL is checked before the transaction. It
// returns fault.NotFound for an unknown ID, the error of check, and fault.Invalid as Add does.
func (o *Operator) Change(
	ctx context.Context, id event.WebhookID, change func(event.Draft) event.Draft, check registry.Check[event.Webhook],
) (w event.Webhook, err error) {
	if err := o.checkURL(ctx, id, change); err != nil {
		return event.Webhook{}, err
	}
	err = o.ports.Transactions.Atomically(transaction.Exclusive(ctx), func(ctx context.Context) error {
		current, err := o.find(ctx, id)
		if err == nil {
			err = check.Permit(&current)
		}
		if err != nil {
			return err
		}
		draft := change(current.Draft())
		if w, err = event.New(draft); err != nil {
			return err
		}
		w.ID, w.Secret, w.CreatedAt = current.ID, current.Secret, current.CreatedAt
		w.ManagedBy = cmp.Or(w.ManagedBy, current.ManagedBy)
		if draft.Secret != "" {
			if err := o.seal(&w, draft.Secret); err != nil {
				return err
			}
		}
		details := audit.Changing(audit.Details{}, current.Object(), w.Object())
		if details[audit.DetailChanges] == nil {
			return nil
		}
		if err := o.ports.Webhooks.Put(ctx, w); err != nil {
			return err
		}
		return o.record(ctx, "webhook_change", w, details)
	})
	return w, err
}

// checkURL returns the error of the URL that a change gives to a webhook, if it is another one.
func (o *Operator) checkURL(ctx context.Context, id event.WebhookID, change func(event.Draft) event.Draft) error {
	current, err := o.find(ctx, id)
	if err != nil {
		return err
	}
	w, err := event.New(change(current.Draft()))
	if err != nil || w.URL == current.URL {
		return nil //nolint:nilerr // the change returns it, after the check of the caller
	}
	return o.ports.Sender.Check(ctx, w.URL)
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
	return each.Map(webhooks, func(w event.Webhook) Listed { return Listed{w, conditions[w.ID]} }), nil
}

// Test sends a signed event of the type test to a webhook, once and at once, keeps how the receiver
// answered, and returns the status of the response. It returns fault.NotFound if there is no webhook with the ID, and
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
	began := o.now()
	body, err := o.ports.Encoder.Event(event.Event{
		ID: secrets.NewUUID[event.ID](o.ports.Entropy), Type: event.Test, Time: began,
	})
	if err != nil {
		return 0, err
	}
	status, err := o.ports.Sender.Send(ctx, eventsender.Request{
		URL: w.URL, Type: event.Test, Body: body, Signature: event.Sign(event.Secret(secret), began, body),
	})
	now := o.ports.Clock.Now()
	last := event.Attempt{At: now, Status: status, Took: now.Sub(began)}
	stored := o.ports.Deliveries.AddTest(ctx, event.NewTest(w.ID, last, describeProblem(status, err)))
	if err == nil {
		err = stored
	}
	return status, err
}

// Remove removes a webhook with what was not delivered to it. It returns fault.NotFound
// for an unknown ID, and the error of check.
func (o *Operator) Remove(ctx context.Context, id event.WebhookID, check registry.Check[event.Webhook]) error {
	return o.ports.Transactions.Atomically(transaction.Exclusive(ctx), func(ctx context.Context) error {
		w, err := o.find(ctx, id)
		if err == nil {
			err = check.Permit(&w)
		}
		if err != nil {
			return err
		}
		if err := o.ports.Webhooks.Remove(ctx, id); err != nil {
			return err
		}
		return o.record(ctx, "webhook_remove", w, audit.About(audit.Details{}, w.Object()))
	})
}

// Attempts returns the deliveries to a webhook that were tried last, the last attempt first; at most
// event.MaxListed. It returns fault.NotFound if there is no webhook with the ID.
func (o *Operator) Attempts(ctx context.Context, id event.WebhookID) ([]event.Delivery, error) {
	if _, err := o.find(ctx, id); err != nil {
		return nil, err
	}
	return o.ports.Deliveries.Attempted(ctx, id, event.MaxListed)
}

// History returns the deliveries of Attempts and the tests of a webhook, the last attempt first. It
// returns fault.NotFound if there is no webhook with the ID.
func (o *Operator) History(ctx context.Context, id event.WebhookID) ([]event.Delivery, error) {
	all, err := o.Attempts(ctx, id)
	if err != nil {
		return nil, err
	}
	tests, err := o.ports.Deliveries.Tests(ctx, id)
	all = append(all, tests...)
	slices.SortStableFunc(all, func(a, b event.Delivery) int { return b.Last.At.Compare(a.Last.At) })
	return all, err
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
		details := audit.About(audit.Details{}, w.Object())
		details.Set("event", string(of))
		return o.record(ctx, "webhook_redeliver", w, details)
	})
	return n, err
}

// find returns a webhook, or fault.NotFound.
func (o *Operator) find(ctx context.Context, id event.WebhookID) (event.Webhook, error) {
	all, err := o.ports.Webhooks.List(ctx)
	if err != nil {
		return event.Webhook{}, err
	}
	if w := registry.FindIn(all, func(w *event.Webhook) bool { return w.ID == id }); w != nil {
		return *w, nil
	}
	return event.Webhook{}, fault.New(fault.NotFound, "there is no webhook with this id")
}

// record records a change of a webhook in the audit log, without its secret.
func (o *Operator) record(ctx context.Context, action audit.Action, w event.Webhook, details audit.Details) error {
	details["webhook"], details["host"] = audit.Text(w.ID), audit.Text(w.URL.Host())
	return o.ports.Recorder.RecordChanges(ctx, registry.NewOperatorChange(action, details))
}

func (o *Operator) now() time.Time { return o.ports.Clock.Now().UTC().Truncate(time.Microsecond) }
