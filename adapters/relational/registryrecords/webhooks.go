package registryrecords

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/event"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// webhookStore stores the receivers of events. It implements registrystore.Webhooks.
type webhookStore struct{ db *database.DB }

func (s *webhookStore) Put(ctx context.Context, w event.Webhook) error {
	types := each.Strings(w.Events)
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
			var id event.WebhookID
			var c event.Condition
			err := rows.Scan(&id, database.TimeInto(&c.LastSuccess), database.TimeInto(&c.LastFailure), &c.LastProblem, &c.Pending, &c.Dead)
			if err != nil {
				return nil, err
			}
			all[id] = c
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

// deliveryStore stores events on their way to webhooks. It implements registrystore.Deliveries.
type deliveryStore struct{ db *database.DB }

// deliveryColumns are all columns of a delivery but its body.
const (
	deliveryColumns = "sequence, webhook, event, type, name, version, state, since, attempts, next_at, ended_at, problem, " +
		"attempted_at, status, duration, urgent"
	noBody = "NULL"
)

func (s *deliveryStore) Add(ctx context.Context, list []event.Delivery) error {
	return s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		for _, d := range list {
			_, err := s.db.ExecStatement(ctx, tx, `INSERT INTO webhook_deliveries
					(webhook, event, type, name, version, body, state, since, attempts, next_at, problem, urgent)
				SELECT id, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM webhooks WHERE id = ?`,
				string(d.Event), string(d.Type), d.Name.String(), d.Version.String(), d.Body, string(d.State),
				database.NewInstant(d.Since), d.Attempts, database.NewInstant(d.NextAt), d.Problem, d.Urgent,
				string(d.Webhook))
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *deliveryStore) Waiting(ctx context.Context, now time.Time) ([]event.WebhookID, error) {
	find := database.Query{Text: `SELECT w.id FROM webhooks AS w WHERE EXISTS
			(SELECT 1 FROM webhook_deliveries AS d WHERE d.webhook = w.id AND d.state = 'pending' AND d.next_at <= ?)`,
		Args: []any{s.db.TimeArgument(now)}, Fixed: true}
	return database.CollectAll(ctx, s.db, find, database.ScanText[event.WebhookID])
}

// Due implements registrystore.Deliveries. The condition on the servers reads one row of an index
// for each delivery that it looks at. The bounds of the webhook and the order, which are longer
// than they need be, leave one index that has the rows in order: otherwise SQLite would sort all
// that are pending, and PostgreSQL might read all that were delivered before. A purge and other
// events do not wait for each other.
func (s *deliveryStore) Due(ctx context.Context, w event.WebhookID, now time.Time, limit int) ([]event.Delivery, error) {
	urgent, err := s.due(ctx, w, now, limit, `urgent ORDER BY webhook, sequence LIMIT ?`)
	if err != nil || len(urgent) == limit {
		return urgent, err
	}
	others, err := s.due(ctx, w, now, limit-len(urgent), `NOT urgent AND (type = 'purge' OR NOT EXISTS (
			SELECT 1 FROM webhook_deliveries AS e
			WHERE e.webhook = d.webhook AND e.state = 'pending' AND e.name = d.name AND e.sequence < d.sequence AND
				e.type <> 'purge'))
		ORDER BY webhook, sequence LIMIT ?`)
	return append(urgent, others...), err
}

// due returns those of the deliveries that are due which meet a condition, with their order.
func (s *deliveryStore) due(
	ctx context.Context, w event.WebhookID, now time.Time, limit int, condition string,
) ([]event.Delivery, error) {
	return database.CollectAll(ctx, s.db, database.Query{
		Text: "SELECT " + deliveryColumns + `, body FROM webhook_deliveries AS d
			WHERE webhook >= ? AND webhook <= ? AND state = 'pending' AND next_at <= ? AND ` + condition,
		Args: []any{string(w), string(w), s.db.TimeArgument(now), limit}, Fixed: true,
	}, scanDelivery)
}

// scanDelivery scans a row that has deliveryColumns and a body.
func scanDelivery(row *sql.Rows) (d event.Delivery, err error) {
	var took int64
	err = row.Scan(&d.Sequence, &d.Webhook, &d.Event, parsedInto(&d.Type, event.ParseType), optional(&d.Name, registry.ParseName),
		optional(&d.Version, registry.ParseVersion), parsedInto(&d.State, event.ParseState), database.TimeInto(&d.Since), &d.Attempts,
		database.TimeInto(&d.NextAt), database.TimeInto(&d.EndedAt), &d.Problem, database.TimeInto(&d.Last.At), &d.Last.Status,
		&took, &d.Urgent, &d.Body)
	d.Last.Took = time.Duration(took) * time.Microsecond
	return d, err
}

func (s *deliveryStore) Update(ctx context.Context, d event.Delivery, at time.Time) error {
	return s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		n, err := s.db.ExecStatement(ctx, tx,
			`UPDATE webhook_deliveries SET state = ?, attempts = ?, next_at = ?, ended_at = ?, problem = ?,
			attempted_at = ?, status = ?, duration = ? WHERE sequence = ? AND webhook = ? AND state = 'pending' AND since = ?`,
			string(d.State), d.Attempts, database.NewInstant(d.NextAt), database.NewInstant(d.EndedAt), d.Problem,
			database.NewInstant(d.Last.At), d.Last.Status, d.Last.Took.Microseconds(), d.Sequence, string(d.Webhook), database.NewInstant(d.Since))
		if err != nil || n == 0 {
			return err
		}
		if d.State == event.Delivered {
			_, err = s.db.ExecStatement(ctx, tx, "UPDATE webhooks SET succeeded_at = ? WHERE id = ?",
				database.NewInstant(at), string(d.Webhook))
		} else {
			_, err = s.db.ExecStatement(ctx, tx, "UPDATE webhooks SET failed_at = ?, problem = ? WHERE id = ?",
				database.NewInstant(at), d.Problem, string(d.Webhook))
		}
		return err
	})
}

func (s *deliveryStore) Redeliver(ctx context.Context, w event.WebhookID, of event.ID, now time.Time) (int, error) {
	which, args := "state = 'dead' AND state <> 'pending'", []any{
		database.NewInstant(now), database.NewInstant(now), string(w),
	}
	if of != "" {
		which = "event = ?"
		args = append(args, string(of))
	}
	n, err := s.db.Exec(ctx, `UPDATE webhook_deliveries
		SET state = 'pending', since = ?, next_at = ?, attempts = 0, ended_at = NULL, problem = '' WHERE webhook = ? AND `+which, args...)
	return int(n), err
}

func (s *deliveryStore) Attempted(ctx context.Context, w event.WebhookID, limit int) ([]event.Delivery, error) {
	return database.CollectAll(ctx, s.db, database.Query{
		Text: "SELECT " + deliveryColumns + ", " + noBody + ` FROM webhook_deliveries
			WHERE webhook = ? AND attempted_at IS NOT NULL ORDER BY attempted_at DESC, sequence DESC LIMIT ?`,
		Args: []any{string(w), limit},
	}, scanDelivery)
}

func (s *deliveryStore) AddTest(ctx context.Context, d event.Delivery) error {
	return s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		webhook := string(d.Webhook)
		_, err := s.db.ExecStatement(ctx, tx, `INSERT INTO webhook_tests (webhook, sent_at, status, duration, problem)
			SELECT id, ?, ?, ?, ? FROM webhooks WHERE id = ?`,
			database.NewInstant(d.Last.At), d.Last.Status, d.Last.Took.Microseconds(), d.Problem, webhook)
		if err == nil {
			_, err = s.db.ExecStatement(ctx, tx, `DELETE FROM webhook_tests WHERE webhook = ? AND sequence <= (
				SELECT sequence FROM webhook_tests WHERE webhook = ? ORDER BY sequence DESC LIMIT 1 OFFSET ?)`,
				webhook, webhook, event.MaxTests)
		}
		return err
	})
}

func (s *deliveryStore) Tests(ctx context.Context, w event.WebhookID) ([]event.Delivery, error) {
	find := database.Query{
		Text: `SELECT sent_at, status, duration, problem FROM webhook_tests WHERE webhook = ?
			ORDER BY sequence DESC LIMIT ?`,
		Args: []any{string(w), event.MaxTests}, Fixed: true,
	}
	return database.CollectAll(ctx, s.db, find, func(row *sql.Rows) (event.Delivery, error) {
		var last event.Attempt
		var took int64
		var problem string
		err := row.Scan(database.TimeInto(&last.At), &last.Status, &took, &problem)
		last.Took = time.Duration(took) * time.Microsecond
		return event.NewTest(w, last, problem), err
	})
}

// RemoveEnded implements registrystore.Deliveries. With dead deliveries, it also removes those
// whose webhook was removed while they were added.
func (s *deliveryStore) RemoveEnded(ctx context.Context, state event.State, before time.Time, keep int) (int, error) {
	webhooks, err := (&webhookStore{s.db}).List(ctx)
	if err != nil {
		return 0, err
	}
	removed := 0
	remove := func(condition string, args ...any) error {
		n, err := s.db.Exec(ctx, "DELETE FROM webhook_deliveries WHERE "+condition, args...)
		removed += int(n)
		return err
	}
	for _, w := range webhooks {
		if err := remove("webhook = ? AND state = ? AND state <> 'pending' AND ended_at < ?", string(w.ID),
			string(state), database.NewInstant(before)); err != nil {
			return removed, err
		}
		err := remove(`sequence IN (SELECT sequence FROM webhook_deliveries WHERE webhook = ? AND state = ? AND state <> 'pending'
			ORDER BY ended_at DESC, sequence DESC LIMIT ? OFFSET ?)`, string(w.ID), string(state), maxRemoved, keep)
		if err != nil {
			return removed, err
		}
	}
	if state != event.Dead {
		return removed, nil
	}
	return removed, remove("state = 'pending' AND NOT EXISTS (SELECT 1 FROM webhooks AS w WHERE w.id = webhook)")
}

// maxRemoved is the greatest number of deliveries that RemoveEnded removes at once because there
// are too many of a webhook.
const maxRemoved = 1_000_000
