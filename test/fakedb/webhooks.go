package fakedb

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/registry/event"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// Webhooks implements [registrystore.Webhooks].
type Webhooks struct {
	*table[event.WebhookID, webhookRow]
}

// NewWebhooks returns the webhooks of a database.
func NewWebhooks(db *Database) *Webhooks { return &Webhooks{db.webhooks} }

// Put implements [registrystore.Webhooks].
func (s *Webhooks) Put(ctx context.Context, w event.Webhook) error {
	return s.db.run(ctx, func(ctx context.Context) error {
		row := s.rows[w.ID]
		if !row.Webhook.CreatedAt.IsZero() {
			w.CreatedAt = row.Webhook.CreatedAt
		}
		row.Webhook = w
		return s.put(ctx, row)
	})
}

// Remove implements [registrystore.Webhooks].
func (s *Webhooks) Remove(ctx context.Context, id event.WebhookID) error {
	return s.db.run(ctx, func(ctx context.Context) error {
		_, err := s.db.deliveries.removeAll(ctx, func(d event.Delivery) bool { return d.Webhook == id })
		return cmp.Or(s.remove(ctx, id), err)
	})
}

// List implements [registrystore.Webhooks].
func (s *Webhooks) List(ctx context.Context) (webhooks []event.Webhook, err error) {
	rows, err := s.list(ctx, all, func(a, b webhookRow) int {
		return cmp.Or(a.Webhook.CreatedAt.Compare(b.Webhook.CreatedAt), cmp.Compare(a.Webhook.ID, b.Webhook.ID))
	})
	for _, row := range rows {
		webhooks = append(webhooks, row.Webhook)
	}
	return webhooks, err
}

// Conditions implements [registrystore.Webhooks].
func (s *Webhooks) Conditions(ctx context.Context) (map[event.WebhookID]event.Condition, error) {
	return result(ctx, s.db, func(ctx context.Context) (map[event.WebhookID]event.Condition, error) {
		conditions := map[event.WebhookID]event.Condition{}
		for id, w := range s.rows {
			conditions[id] = event.Condition{LastSuccess: w.Succeeded, LastProblem: w.Problem, LastFailure: w.Failed}
		}
		deliveries, err := s.db.deliveries.list(ctx, all, newestEnd)
		for _, d := range deliveries {
			c := conditions[d.Webhook]
			switch d.State {
			case event.Pending:
				c.Pending++
			case event.Dead:
				c.Dead++
				d.Body = nil
				c.Newest = first(append(c.Newest, d), event.MaxListed)
			}
			conditions[d.Webhook] = c
		}
		return conditions, err
	})
}

// newestEnd compares deliveries so that the one that ended last is the first.
func newestEnd(a, b event.Delivery) int {
	return cmp.Or(b.EndedAt.Compare(a.EndedAt), cmp.Compare(b.Sequence, a.Sequence))
}

// Lease implements [registrystore.Webhooks].
func (s *Webhooks) Lease(ctx context.Context, id event.WebhookID, l registrystore.Lease) (bool, error) {
	taken := false
	err := s.update(ctx, id, func(w *webhookRow) error {
		if taken = w.Lease.Holder == l.Holder || !w.Lease.Until.After(l.Now); taken {
			w.Lease = l
		}
		return nil
	})
	return taken, ignoreNotFound(err)
}

// Release implements [registrystore.Webhooks].
func (s *Webhooks) Release(ctx context.Context, id event.WebhookID, holder string) error {
	return s.db.run(ctx, func(ctx context.Context) error {
		w := s.rows[id]
		if w.Lease.Holder != holder {
			return nil
		}
		w.Lease = registrystore.Lease{}
		return s.put(ctx, w)
	})
}

// Deliveries implements [registrystore.Deliveries].
type Deliveries struct{ *table[int64, event.Delivery] }

// NewDeliveries returns the deliveries of a database.
func NewDeliveries(db *Database) *Deliveries { return &Deliveries{db.deliveries} }

// Add implements [registrystore.Deliveries].
func (s *Deliveries) Add(ctx context.Context, list []event.Delivery) error {
	return s.db.run(ctx, func(ctx context.Context) (err error) {
		for _, d := range list {
			if s.db.webhooks.has(d.Webhook) {
				d.Sequence, d.EndedAt = s.db.nextNumber(), time.Time{}
				err = cmp.Or(err, s.insert(ctx, d))
			}
		}
		return err
	})
}

// Waiting implements [registrystore.Deliveries].
func (s *Deliveries) Waiting(ctx context.Context, now time.Time) (waiting []event.WebhookID, err error) {
	pending, err := s.list(ctx, func(d event.Delivery) bool {
		return d.State == event.Pending && !d.NextAt.After(now)
	}, bySequence)
	for _, d := range pending {
		if !slices.Contains(waiting, d.Webhook) {
			waiting = append(waiting, d.Webhook)
		}
	}
	return waiting, err
}

func bySequence(a, b event.Delivery) int { return cmp.Compare(a.Sequence, b.Sequence) }

// Due implements [registrystore.Deliveries].
func (s *Deliveries) Due(
	ctx context.Context, w event.WebhookID, now time.Time, limit int,
) (due []event.Delivery, err error) {
	pending, err := s.list(ctx, func(d event.Delivery) bool {
		return d.Webhook == w && d.State == event.Pending
	}, bySequence)
	seen := map[string]bool{}
	for _, d := range pending {
		purge := d.Type == event.Purge
		if (purge || !seen[d.Name.String()]) && !d.NextAt.After(now) {
			due = append(due, d)
		}
		seen[d.Name.String()] = seen[d.Name.String()] || !purge
	}
	slices.SortStableFunc(due, func(a, b event.Delivery) int {
		switch {
		case a.Urgent == b.Urgent:
			return 0
		case a.Urgent:
			return -1
		default:
			return 1
		}
	})
	return first(due, limit), err
}

// Update implements [registrystore.Deliveries].
func (s *Deliveries) Update(ctx context.Context, d event.Delivery, at time.Time) error {
	return s.db.run(ctx, func(ctx context.Context) error {
		stored := s.rows[d.Sequence]
		if stored.Webhook != d.Webhook || stored.State != event.Pending || !stored.Since.Equal(d.Since) {
			return nil
		}
		stored.State, stored.Attempts, stored.Problem, stored.NextAt, stored.EndedAt = d.State, d.Attempts, d.Problem,
			d.NextAt, d.EndedAt
		stored.Last = d.Last
		w := s.db.webhooks.rows[d.Webhook]
		if d.State == event.Delivered {
			w.Succeeded = at
		} else {
			w.Failed, w.Problem = at, d.Problem
		}
		return cmp.Or(s.put(ctx, stored), s.db.webhooks.put(ctx, w))
	})
}

// Redeliver implements [registrystore.Deliveries].
func (s *Deliveries) Redeliver(ctx context.Context, w event.WebhookID, of event.ID, now time.Time) (int, error) {
	again, err := s.changeAll(ctx, func(d event.Delivery) bool {
		return d.Webhook == w && (of == "" && d.State == event.Dead || of != "" && d.Event == of)
	}, bySequence, func(d *event.Delivery) {
		d.State, d.Since, d.NextAt, d.EndedAt, d.Attempts, d.Problem = event.Pending, now, now, time.Time{}, 0, ""
	})
	return len(again), err
}

// Attempted implements [registrystore.Deliveries].
func (s *Deliveries) Attempted(ctx context.Context, w event.WebhookID, limit int) ([]event.Delivery, error) {
	tried, err := s.list(ctx, func(d event.Delivery) bool {
		return d.Webhook == w && !d.Last.At.IsZero()
	}, func(a, b event.Delivery) int {
		return cmp.Or(b.Last.At.Compare(a.Last.At), cmp.Compare(b.Sequence, a.Sequence))
	})
	for i := range tried {
		tried[i].Body = nil
	}
	return first(tried, limit), err
}

// AddTest implements [registrystore.Deliveries].
func (s *Deliveries) AddTest(ctx context.Context, d event.Delivery) error {
	err := s.db.webhooks.update(ctx, d.Webhook, func(w *webhookRow) error {
		w.Tests = first(append([]event.Delivery{d}, w.Tests...), event.MaxTests)
		return nil
	})
	return ignoreNotFound(err)
}

// Tests implements [registrystore.Deliveries].
func (s *Deliveries) Tests(ctx context.Context, w event.WebhookID) ([]event.Delivery, error) {
	return result(ctx, s.db, func(context.Context) ([]event.Delivery, error) { return s.db.webhooks.rows[w].Tests, nil })
}

// RemoveEnded implements [registrystore.Deliveries].
func (s *Deliveries) RemoveEnded(ctx context.Context, state event.State, before time.Time, keep int) (int, error) {
	return result(ctx, s.db, func(ctx context.Context) (n int, err error) {
		ended, err := s.list(ctx, func(d event.Delivery) bool { return d.State == state }, newestEnd)
		kept := map[event.WebhookID]int{}
		for _, d := range ended {
			if kept[d.Webhook]++; kept[d.Webhook] > keep || d.EndedAt.Before(before) {
				err = cmp.Or(err, s.remove(ctx, d.Sequence))
				n++
			}
		}
		return n, err
	})
}
