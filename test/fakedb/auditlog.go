package fakedb

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
)

// AuditLog implements [authstore.AuditLog].
type AuditLog struct{ db *Database }

// NewAuditLog returns the audit log of a database.
func NewAuditLog(db *Database) *AuditLog { return &AuditLog{db} }

// Append implements [authstore.AuditLog].
func (l *AuditLog) Append(ctx context.Context, events ...audit.Event) error {
	rows := make([]eventRow, len(events))
	for i, e := range events {
		if e.Details == nil {
			e.Details = audit.Details{}
		}
		details, err := json.Marshal(e.Details)
		if err != nil {
			return err
		}
		e.Details = nil
		rows[i] = eventRow{Event: e, Details: details}
	}
	return l.db.run(ctx, func(ctx context.Context) error {
		for i := range rows {
			rows[i].Position = l.db.nextNumber()
		}
		return l.db.events.insert(ctx, rows...)
	})
}

// Search implements [authstore.AuditLog].
func (l *AuditLog) Search(ctx context.Context, q authstore.AuditQuery) (events []audit.Event, total int, err error) {
	if q.Limit < 1 || q.Limit > auth.MaxPage || q.Offset < 0 {
		return nil, 0, fault.New(fault.Invalid, "limit must be 1 to 1000 and offset 0 or more").
			WithCode(auth.CodeValidation)
	}
	q.After, q.Before = storedTime(q.After), storedTime(q.Before)
	found, err := l.db.events.list(ctx, func(e eventRow) bool {
		err := json.Unmarshal(e.Details, &e.Event.Details)
		return err != nil || e.matches(q)
	},
		func(a, b eventRow) int { return compareEvents(b, a) })
	page, total := cutPage(found, auth.PageRequest{Offset: q.Offset, Limit: q.Limit})
	for _, row := range page {
		err = cmp.Or(err, json.Unmarshal(row.Details, &row.Event.Details))
		events = append(events, row.Event)
	}
	if q.Uncounted || err != nil {
		total = 0
	}
	return events, total, err
}

// Page implements [authstore.AuditLog].
func (l *AuditLog) Page(
	ctx context.Context, q authstore.AuditQuery, after authstore.AuditPlace,
) ([]audit.Event, error) {
	last := eventRow{Event: audit.Event{ID: after.ID, Time: storedTime(after.Time)}}
	rows, err := l.listAfter(ctx, q, last, func(a, b eventRow) int { return compareEvents(b, a) })
	events := make([]audit.Event, len(rows))
	for i := range rows {
		events[i] = rows[i].Event
	}
	return events, err
}

// Follow implements [authstore.AuditLog].
func (l *AuditLog) Follow(
	ctx context.Context, q authstore.AuditQuery, after authstore.AuditPlace,
) (events []audit.Event, next authstore.AuditPlace, err error) {
	last := eventRow{Event: audit.Event{ID: after.ID, Time: after.Time}, Position: after.Position}
	if after.ID != "" && after.Position == 0 {
		if last, err = l.db.events.find(ctx, after.ID); err != nil {
			return nil, after, err
		}
	}
	rows, err := l.listAfter(ctx, q, last, func(a, b eventRow) int { return cmp.Compare(a.Position, b.Position) })
	for _, row := range rows {
		last = row
		events = append(events, row.Event)
	}
	return events, authstore.AuditPlace{Time: last.Event.Time, ID: last.Event.ID, Position: last.Position}, err
}

// listAfter returns the rows of a query that follow one in an order, with their details.
func (l *AuditLog) listAfter(
	ctx context.Context, q authstore.AuditQuery, last eventRow, order func(a, b eventRow) int,
) (matching []eventRow, err error) {
	q.After, q.Before = storedTime(q.After), storedTime(q.Before)
	found, err := l.db.events.list(ctx, all, order)
	for _, row := range found {
		err = cmp.Or(err, json.Unmarshal(row.Details, &row.Event.Details))
		if row.matches(q) && (last.Event.ID == "" || order(row, last) > 0) {
			matching = append(matching, row)
		}
	}
	return first(matching, q.Limit), err
}

func compareEvents(a, b eventRow) int {
	return cmp.Or(a.Event.Time.Compare(b.Event.Time), cmp.Compare(a.Event.ID, b.Event.ID))
}

func (r *eventRow) matches(q authstore.AuditQuery) bool {
	e := &r.Event
	actor := e.Details.Text(audit.DetailActor)
	if service := e.Details.Text("service"); actor == "" && e.Category == audit.RegistryChange {
		if actor = e.Details.Text("userId"); service != "" {
			actor = audit.ServiceActor + service
		}
	}
	return (q.ID == "" || e.ID == q.ID) && (q.Subject == "" || e.Subject == q.Subject) &&
		(q.Category == "" || e.Category == q.Category) &&
		(q.Success == nil || e.Success == *q.Success) &&
		(q.Actor == "" || actor == q.Actor || audit.PersonActor+actor == q.Actor) &&
		(q.Server == "" || e.Details.Text(audit.DetailServer) == q.Server) &&
		(q.Run == "" || e.Details.Text(audit.DetailPart) == q.Run) &&
		(!q.Whole || e.Details[audit.DetailPart] == nil) &&
		(q.After.IsZero() || e.Time.After(q.After)) &&
		(q.Before.IsZero() || e.Time.Before(q.Before))
}

// CountHour is a no-op, because every search counts all events.
func (l *AuditLog) CountHour(ctx context.Context, _ time.Time) (bool, error) { return false, ctx.Err() }

// DeleteBefore implements [authstore.AuditLog].
func (l *AuditLog) DeleteBefore(ctx context.Context, before time.Time, limit int) (int, error) {
	before = storedTime(before)
	return result(ctx, l.db, func(ctx context.Context) (int, error) {
		old, err := l.db.events.list(ctx, func(e eventRow) bool { return e.Event.Time.Before(before) }, compareEvents)
		old = first(old, limit)
		for _, e := range old {
			err = cmp.Or(err, l.db.events.remove(ctx, e.Event.ID))
		}
		return len(old), err
	})
}
