package relational

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/auditlog"
)

var _ auditlog.Log = (*AuditLog)(nil)

// AuditLog keeps what happened. It answers ports/auditlog.
type AuditLog struct{ db *DB }

// NewAuditLog returns the audit log of a database.
func NewAuditLog(db *DB) *AuditLog { return &AuditLog{db: db} }

type eventRow struct {
	bun.BaseModel `bun:"table:audit_events,alias:e"`

	ID      auth.EventID   `bun:"id,pk"`
	Time    instant        `bun:"time"`
	Type    auth.EventType `bun:"type"`
	UserID  sql.NullString `bun:"user_id"`
	Success bool           `bun:"success"`
	Details string         `bun:"details"` // JSON object
}

func rowOfEvent(e auth.Event) (*eventRow, error) {
	details := []byte("{}")
	if len(e.Details) > 0 {
		var err error
		if details, err = json.Marshal(e.Details); err != nil {
			return nil, fault.Wrap(fault.Internal, "", "the details of an audit event are no JSON", err)
		}
	}
	return &eventRow{
		ID: e.ID, Time: at(e.Time), Type: e.Type, UserID: sql.NullString{String: string(e.UserID), Valid: e.UserID != ""},
		Success: e.Success, Details: string(details),
	}, nil
}

func (r *eventRow) event() (auth.Event, error) {
	e := auth.Event{
		ID: r.ID, Time: r.Time.Time, Type: r.Type, UserID: auth.UserID(r.UserID.String),
		Success: r.Success, Details: map[string]any{},
	}
	if err := json.Unmarshal([]byte(r.Details), &e.Details); err != nil {
		return auth.Event{}, fault.Wrap(fault.Internal, "", "the details of an audit event cannot be read", err)
	}
	return e, nil
}

// Append adds events.
func (l *AuditLog) Append(ctx context.Context, events ...auth.Event) error {
	if len(events) == 0 {
		return ctx.Err()
	}
	rows := make([]*eventRow, len(events))
	for i, e := range events {
		var err error
		if rows[i], err = rowOfEvent(e); err != nil {
			return err
		}
	}
	return l.db.write(ctx, func(ctx context.Context, tx bun.IDB) error {
		_, err := tx.NewInsert().Model(&rows).Exec(ctx)
		return l.db.fault(err)
	})
}

// Search returns the matching events, newest first. It counts from an index
// alone.
func (l *AuditLog) Search(ctx context.Context, q auditlog.Query) (events []auth.Event, total int, err error) {
	if q.Limit < 1 || q.Limit > auditlog.MaxPage || q.Offset < 0 {
		return nil, 0, fault.New(fault.Invalid, auth.CodeValidation, "limit must be 1 to 1000 and offset 0 or more")
	}
	db := l.db.read(ctx)
	var rows []eventRow
	if err := page(db, q).Scan(ctx, &rows); err != nil {
		return nil, 0, l.db.fault(err)
	}
	events = make([]auth.Event, len(rows))
	for i := range rows {
		if events[i], err = rows[i].event(); err != nil {
			return nil, 0, err
		}
	}
	if q.Uncounted {
		return events, 0, nil
	}
	if last := len(rows) > 0 && len(rows) < q.Limit; last {
		return events, q.Offset + len(rows), nil
	}
	total, err = matching(db.NewSelect().TableExpr("audit_events"), q).Count(ctx)
	if err != nil {
		return nil, 0, l.db.fault(err)
	}
	return events, total, nil
}

// DeleteBefore removes the oldest events before a time, at most limit.
func (l *AuditLog) DeleteBefore(ctx context.Context, before time.Time, limit int) (n int, err error) {
	if limit < 1 {
		return 0, ctx.Err()
	}
	err = l.db.write(ctx, func(ctx context.Context, tx bun.IDB) (err error) {
		old := tx.NewSelect().TableExpr("audit_events").Column("id").Where("time < ?", at(before)).
			Order("time", "id").Limit(limit)
		n, err = l.db.affected(tx.NewDelete().Model((*eventRow)(nil)).Where("id IN (?)", old).Exec(ctx))
		return err
	})
	return n, err
}

// page selects one page. A later one is chosen from an index alone, so that only
// its own rows are read however great the offset is; the first has no others
// before it, and is spared to find each row twice.
func page(db bun.IDB, q auditlog.Query) *bun.SelectQuery {
	chosen := matching(db.NewSelect().TableExpr("audit_events"), q).Order("time DESC", "id DESC").Limit(q.Limit)
	if q.Offset > 0 {
		chosen = db.NewSelect().TableExpr("audit_events").
			Where("id IN (?)", chosen.Column("id").Offset(q.Offset)).Order("time DESC", "id DESC")
	}
	return chosen.ColumnExpr("*")
}

// matching narrows a selection to the events of a query.
func matching(s *bun.SelectQuery, q auditlog.Query) *bun.SelectQuery {
	if q.UserID != "" {
		s.Where("user_id = ?", q.UserID)
	}
	if q.Type != "" {
		s.Where("type = ?", q.Type)
	}
	if !q.After.IsZero() {
		s.Where("time > ?", at(q.After))
	}
	if !q.Before.IsZero() {
		s.Where("time < ?", at(q.Before))
	}
	return s
}
