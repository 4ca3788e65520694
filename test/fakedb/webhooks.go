package fakedb

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/event"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// Webhooks implements [registrystore.Webhooks].
type Webhooks struct{ db *Database }

var _ registrystore.Webhooks = (*Webhooks)(nil)

// NewWebhooks returns the webhooks of a database.
func NewWebhooks(db *Database) *Webhooks { return &Webhooks{db} }

// storedWebhook is a webhook with its lease and the outcome of the last attempts.
type storedWebhook struct {
	event.Webhook
	lease             registrystore.Lease
	succeeded, failed time.Time
	problem           string
}

// Add implements [registrystore.Webhooks].
func (s *Webhooks) Add(ctx context.Context, w event.Webhook) error {
	w.Events, w.Secret, w.CreatedAt = slices.Clone(w.Events), slices.Clone(w.Secret), truncateToMicroseconds(w.CreatedAt)
	return s.db.writeTables(ctx, func(t *tables) error {
		t.registry.webhooks[w.ID] = storedWebhook{Webhook: w}
		return nil
	})
}

// Remove implements [registrystore.Webhooks].
func (s *Webhooks) Remove(ctx context.Context, id event.WebhookID) error {
	return s.db.writeTables(ctx, func(t *tables) error {
		if _, ok := t.registry.webhooks[id]; !ok {
			return fault.New(fault.NotFound, "the webhook does not exist")
		}
		delete(t.registry.webhooks, id)
		for sequence, d := range t.registry.deliveries {
			if d.Webhook == id {
				delete(t.registry.deliveries, sequence)
			}
		}
		return nil
	})
}

// List implements [registrystore.Webhooks].
func (s *Webhooks) List(ctx context.Context) (all []event.Webhook, err error) {
	err = s.db.readTables(ctx, func(t *tables) error {
		for _, w := range t.registry.webhooks {
			w.Events, w.Secret = slices.Clone(w.Events), slices.Clone(w.Secret)
			all = append(all, w.Webhook)
		}
		return nil
	})
	slices.SortFunc(all, func(a, b event.Webhook) int { return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID)) })
	return all, err
}

// Conditions implements [registrystore.Webhooks].
func (s *Webhooks) Conditions(ctx context.Context) (all map[event.WebhookID]event.Condition, err error) {
	err = s.db.readTables(ctx, func(t *tables) error {
		all = make(map[event.WebhookID]event.Condition, len(t.registry.webhooks))
		for id, w := range t.registry.webhooks {
			c := event.Condition{LastSuccess: w.succeeded, LastProblem: w.problem, LastFailure: w.failed}
			for _, d := range t.registry.deliveries {
				switch {
				case d.Webhook != id:
				case d.State == event.Pending:
					c.Pending++
				case d.State == event.Dead:
					c.Dead++
					d.Body = nil
					c.Newest = append(c.Newest, d)
				}
			}
			slices.SortFunc(c.Newest, newestEnd)
			c.Newest = c.Newest[:min(len(c.Newest), event.MaxListed)]
			all[id] = c
		}
		return nil
	})
	return all, err
}

// newestEnd compares deliveries so that the one that ended last is the first.
func newestEnd(a, b event.Delivery) int {
	return cmp.Or(b.EndedAt.Compare(a.EndedAt), cmp.Compare(b.Sequence, a.Sequence))
}

// Lease implements [registrystore.Webhooks].
func (s *Webhooks) Lease(ctx context.Context, id event.WebhookID, l registrystore.Lease) (ok bool, err error) {
	err = s.db.writeTables(ctx, func(t *tables) error {
		w, found := t.registry.webhooks[id]
		if ok = found && (w.lease.Holder == l.Holder || !w.lease.Until.After(l.Now)); ok {
			l.Until = truncateToMicroseconds(l.Until)
			w.lease = l
			t.registry.webhooks[id] = w
		}
		return nil
	})
	return ok, err
}

// Release implements [registrystore.Webhooks].
func (s *Webhooks) Release(ctx context.Context, id event.WebhookID, holder string) error {
	return s.db.writeTables(ctx, func(t *tables) error {
		if w, ok := t.registry.webhooks[id]; ok && w.lease.Holder == holder {
			w.lease = registrystore.Lease{}
			t.registry.webhooks[id] = w
		}
		return nil
	})
}

// Deliveries implements [registrystore.Deliveries].
type Deliveries struct{ db *Database }

var _ registrystore.Deliveries = (*Deliveries)(nil)

// NewDeliveries returns the deliveries of a database.
func NewDeliveries(db *Database) *Deliveries { return &Deliveries{db} }

// Add implements [registrystore.Deliveries].
func (s *Deliveries) Add(ctx context.Context, list []event.Delivery) error {
	return s.db.writeTables(ctx, func(t *tables) error {
		for _, d := range list {
			if _, ok := t.registry.webhooks[d.Webhook]; !ok {
				continue
			}
			t.registry.lastDelivery++
			d.Sequence = t.registry.lastDelivery
			d.Since, d.NextAt, d.EndedAt = truncateToMicroseconds(d.Since), truncateToMicroseconds(d.NextAt), time.Time{}
			d.Body = slices.Clone(d.Body)
			t.registry.deliveries[d.Sequence] = d
		}
		return nil
	})
}

// Waiting implements [registrystore.Deliveries].
func (s *Deliveries) Waiting(ctx context.Context, now time.Time) (all []event.WebhookID, err error) {
	err = s.db.readTables(ctx, func(t *tables) error {
		for _, d := range t.registry.deliveries {
			if d.State == event.Pending && !d.NextAt.After(now) && !slices.Contains(all, d.Webhook) {
				all = append(all, d.Webhook)
			}
		}
		return nil
	})
	return all, err
}

// Due implements [registrystore.Deliveries].
func (s *Deliveries) Due(ctx context.Context, w event.WebhookID, now time.Time, limit int) (due []event.Delivery, err error) {
	err = s.db.readTables(ctx, func(t *tables) error {
		first := map[string]event.Delivery{}
		for _, d := range t.registry.deliveries {
			if d.Webhook != w || d.State != event.Pending {
				continue
			}
			if other, ok := first[d.Name.String()]; !ok || d.Sequence < other.Sequence {
				first[d.Name.String()] = d
			}
		}
		for _, d := range first {
			if !d.NextAt.After(now) {
				d.Body = slices.Clone(d.Body)
				due = append(due, d)
			}
		}
		return nil
	})
	slices.SortFunc(due, func(a, b event.Delivery) int { return cmp.Compare(a.Sequence, b.Sequence) })
	return due[:min(len(due), limit)], err
}

// Update implements [registrystore.Deliveries].
func (s *Deliveries) Update(ctx context.Context, d event.Delivery, at time.Time) error {
	at = truncateToMicroseconds(at)
	return s.db.writeTables(ctx, func(t *tables) error {
		stored, ok := t.registry.deliveries[d.Sequence]
		if !ok || stored.Webhook != d.Webhook || stored.State != event.Pending || !stored.Since.Equal(d.Since) {
			return nil
		}
		stored.State, stored.Attempts, stored.Problem = d.State, d.Attempts, d.Problem
		stored.NextAt, stored.EndedAt = truncateToMicroseconds(d.NextAt), truncateToMicroseconds(d.EndedAt)
		t.registry.deliveries[d.Sequence] = stored
		w := t.registry.webhooks[d.Webhook]
		if d.State == event.Delivered {
			w.succeeded = at
		} else {
			w.failed, w.problem = at, d.Problem
		}
		t.registry.webhooks[d.Webhook] = w
		return nil
	})
}

// Redeliver implements [registrystore.Deliveries].
func (s *Deliveries) Redeliver(ctx context.Context, w event.WebhookID, of event.ID, now time.Time) (n int, err error) {
	now = truncateToMicroseconds(now)
	err = s.db.writeTables(ctx, func(t *tables) error {
		n = 0
		for sequence, d := range t.registry.deliveries {
			if d.Webhook != w || of == "" && d.State != event.Dead || of != "" && d.Event != of {
				continue
			}
			d.State, d.Since, d.NextAt, d.EndedAt, d.Attempts, d.Problem = event.Pending, now, now, time.Time{}, 0, ""
			t.registry.deliveries[sequence] = d
			n++
		}
		return nil
	})
	return n, err
}

// RemoveEnded implements [registrystore.Deliveries].
func (s *Deliveries) RemoveEnded(ctx context.Context, state event.State, before time.Time, keep int) (n int, err error) {
	err = s.db.writeTables(ctx, func(t *tables) error {
		n = 0
		of := map[event.WebhookID][]event.Delivery{}
		for _, d := range t.registry.deliveries {
			if d.State == state {
				of[d.Webhook] = append(of[d.Webhook], d)
			}
		}
		for _, list := range of {
			slices.SortFunc(list, newestEnd)
			for i, d := range list {
				if i >= keep || d.EndedAt.Before(before) {
					delete(t.registry.deliveries, d.Sequence)
					n++
				}
			}
		}
		return nil
	})
	return n, err
}
