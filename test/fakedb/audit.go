package fakedb

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
)

// storedEvent contains the details of an event as JSON, so that they are read with the same types
// as from a database.
type storedEvent struct {
	auth.Event
	details []byte
}

// AuditLog implements [authstore.AuditLog].
type AuditLog struct{ db *Database }

// NewAuditLog returns the audit log of a database.
func NewAuditLog(db *Database) *AuditLog { return &AuditLog{db: db} }

// Append adds events.
func (l *AuditLog) Append(ctx context.Context, events ...auth.Event) error {
	stored := make([]storedEvent, len(events))
	for i, e := range events {
		details, err := json.Marshal(e.Details)
		if err != nil {
			return err
		}
		e.Time, e.Details = truncateToMicroseconds(e.Time), nil
		stored[i] = storedEvent{Event: e, details: details}
	}
	return l.db.writeTables(ctx, func(t *tables) error {
		for _, e := range stored {
			if _, taken := t.auth.events[e.ID]; taken {
				return errConflict("the event id exists already")
			}
		}
		for _, e := range stored {
			t.auth.events[e.ID] = e
		}
		return nil
	})
}

// Search returns the matching events, newest first.
func (l *AuditLog) Search(ctx context.Context, q authstore.AuditQuery) (events []auth.Event, total int, err error) {
	if q.Limit < 1 || q.Limit > auth.MaxPage || q.Offset < 0 {
		return nil, 0, fault.New(fault.Invalid, "limit must be 1 to 1000 and offset 0 or more").WithCode(auth.CodeValidation)
	}
	var found []storedEvent
	err = l.db.readTables(ctx, func(t *tables) error {
		found = selectRows(t.auth.events, func(e storedEvent) bool { return matchesQuery(e, q) },
			func(a, b storedEvent) int { return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(b.ID, a.ID)) }, len(t.auth.events))
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	total = len(found)
	found = found[min(q.Offset, total):]
	for _, stored := range found[:min(q.Limit, len(found))] {
		e := stored.Event
		e.Details = map[string]any{}
		if err := json.Unmarshal(stored.details, &e.Details); err != nil {
			return nil, 0, err
		}
		if e.Details == nil {
			e.Details = map[string]any{}
		}
		events = append(events, e)
	}
	if q.Uncounted {
		total = 0
	}
	return events, total, nil
}

// CountHour is a no-op, because every search counts all events.
func (l *AuditLog) CountHour(ctx context.Context, _ time.Time) (bool, error) { return false, ctx.Err() }

// DeleteBefore deletes the oldest events before a time, at most limit of them.
func (l *AuditLog) DeleteBefore(ctx context.Context, before time.Time, limit int) (n int, err error) {
	err = l.db.writeTables(ctx, func(t *tables) error {
		old := selectRows(t.auth.events, func(e storedEvent) bool { return e.Time.Before(truncateToMicroseconds(before)) },
			func(a, b storedEvent) int { return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.ID, b.ID)) }, limit)
		for _, e := range old {
			delete(t.auth.events, e.ID)
		}
		n = len(old)
		return nil
	})
	return n, err
}

func matchesQuery(e storedEvent, q authstore.AuditQuery) bool {
	return (q.UserID == "" || e.UserID == q.UserID) &&
		(q.Type == "" || e.Type == q.Type) &&
		(q.After.IsZero() || e.Time.After(truncateToMicroseconds(q.After))) &&
		(q.Before.IsZero() || e.Time.Before(truncateToMicroseconds(q.Before)))
}
