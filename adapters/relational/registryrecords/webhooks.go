package registryrecords

import (
	"context"
	"database/sql"
	"strings"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/event"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// webhookStore stores the receivers of events. It implements registrystore.Webhooks.
type webhookStore struct{ db *database.DB }

func (s *webhookStore) Put(ctx context.Context, w event.Webhook) error {
	types := make([]string, len(w.Events))
	for i, t := range w.Events {
		types[i] = string(t)
	}
	_, err := s.db.Exec(ctx,
		"INSERT INTO webhooks (id, url, events, pattern, secret, created_at, managed_by) VALUES (?, ?, ?, ?, ?, ?, ?) "+
			"ON CONFLICT (id) DO UPDATE SET "+replaced("url", "events", "pattern", "secret", "managed_by"),
		string(w.ID), w.URL.String(), strings.Join(types, " "), w.Pattern.String(), w.Secret,
		database.NewInstant(w.CreatedAt), w.ManagedBy)
	return err
}

// Remove implements registrystore.Webhooks. It deletes the deliveries last: until then, another
// transaction may add some.
func (s *webhookStore) Remove(ctx context.Context, id event.WebhookID) error {
	return s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		n, err := s.db.ExecStatement(ctx, tx, "DELETE FROM webhooks WHERE id = ?", string(id))
		if err == nil && n == 0 {
			return fault.New(fault.NotFound, "the webhook does not exist")
		}
		if err == nil {
			_, err = s.db.ExecStatement(ctx, tx, "DELETE FROM webhook_deliveries WHERE webhook = ?", string(id))
		}
		return err
	})
}

func (s *webhookStore) List(ctx context.Context) ([]event.Webhook, error) {
	find := database.Query{
		Text:  "SELECT id, url, events, pattern, secret, created_at, managed_by FROM webhooks ORDER BY created_at, id",
		Fixed: true,
	}
	return database.CollectAll(ctx, s.db, find, func(row *sql.Rows) (event.Webhook, error) {
		var id, url, types, pattern, manager string
		var secret []byte
		var created database.Instant
		if err := row.Scan(&id, &url, &types, &pattern, &secret, &created, &manager); err != nil {
			return event.Webhook{}, err
		}
		w, err := event.New(event.Draft{URL: url, Events: strings.Fields(types), Pattern: pattern, ManagedBy: manager})
		w.ID, w.Secret, w.CreatedAt = event.WebhookID(id), secret, created.Time
		return w, checkRow(err)
	})
}

func (s *webhookStore) Conditions(ctx context.Context) (map[event.WebhookID]event.Condition, error) {
	find := database.Query{Text: `SELECT w.id, w.succeeded_at, w.failed_at, w.problem,
			(SELECT count(*) FROM webhook_deliveries AS d WHERE d.webhook = w.id AND d.state = 'pending'),
			(SELECT count(*) FROM webhook_deliveries AS d WHERE d.webhook = w.id AND d.state = 'dead' AND d.state <> 'pending')
		FROM webhooks AS w`, Fixed: true}
	all, err := database.Collect(ctx, s.db, find, func(rows *sql.Rows) (map[event.WebhookID]event.Condition, error) {
		all := map[event.WebhookID]event.Condition{}
		for rows.Next() {
			var id string
			var c event.Condition
			var succeeded, failed database.Instant
			if err := rows.Scan(&id, &succeeded, &failed, &c.LastProblem, &c.Pending, &c.Dead); err != nil {
				return nil, err
			}
			c.LastSuccess, c.LastFailure = succeeded.Time, failed.Time
			all[event.WebhookID(id)] = c
		}
		return all, nil
	})
	if err != nil {
		return nil, err
	}
	for id, c := range all {
		if c.Dead > 0 {
			if c.Newest, err = s.newestDead(ctx, id); err != nil {
				return nil, err
			}
			all[id] = c
		}
	}
	return all, nil
}

// newestDead returns the newest dead deliveries to a webhook, without their bodies.
func (s *webhookStore) newestDead(ctx context.Context, id event.WebhookID) ([]event.Delivery, error) {
	return database.CollectAll(ctx, s.db, database.Query{
		Text: "SELECT " + deliveryColumns + ", " + noBody + ` FROM webhook_deliveries
			WHERE webhook = ? AND state = 'dead' AND state <> 'pending' ORDER BY ended_at DESC, sequence DESC LIMIT ?`,
		Args: []any{string(id), event.MaxListed},
	}, scanDelivery)
}

func (s *webhookStore) Lease(ctx context.Context, id event.WebhookID, l registrystore.Lease) (bool, error) {
	n, err := s.db.Exec(ctx,
		"UPDATE webhooks SET lease_holder = ?, lease_until = ? WHERE id = ? AND (lease_holder = ? OR lease_until IS NULL OR lease_until <= ?)",
		l.Holder, database.NewInstant(l.Until), string(id), l.Holder, database.NewInstant(l.Now))
	return n == 1, err
}

func (s *webhookStore) Release(ctx context.Context, id event.WebhookID, holder string) error {
	_, err := s.db.Exec(ctx,
		"UPDATE webhooks SET lease_holder = '', lease_until = NULL WHERE id = ? AND lease_holder = ?",
		string(id), holder)
	return err
}
