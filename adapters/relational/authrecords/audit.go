package authrecords

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
)

var _ authstore.AuditLog = (*AuditLog)(nil)

// AuditLog stores audit events. It implements [authstore.AuditLog].
type AuditLog struct{ db *database.DB }

// NewAuditLog returns the audit log of a database.
func NewAuditLog(db *database.DB) *AuditLog { return &AuditLog{db: db} }

type eventRow struct {
	bun.BaseModel `bun:"table:audit_events,alias:e"`

	ID       audit.EventID    `bun:"id,pk"`
	Time     database.Instant `bun:"time"`
	Category audit.Category   `bun:"column:type"`
	Subject  sql.NullString   `bun:"user_id"`
	Success  bool             `bun:"success"`
	Details  string           `bun:"details"` // JSON object
	Position int64            `bun:"_position,scanonly"`
}

func newEventRow(e audit.Event) (*eventRow, error) {
	details := []byte("{}")
	if len(e.Details) > 0 {
		var err error
		if details, err = json.Marshal(e.Details); err != nil {
			return nil, fault.Wrap(fault.Internal, "the details of an audit event are not JSON", err)
		}
	}
	return &eventRow{
		ID: e.ID, Time: database.NewInstant(e.Time), Category: e.Category,
		Subject: sql.NullString{String: string(e.Subject), Valid: e.Subject != ""},
		Success: e.Success, Details: string(details),
	}, nil
}

func (r *eventRow) toEvent() (audit.Event, error) {
	e := audit.Event{
		ID: r.ID, Time: r.Time.Time, Category: r.Category, Subject: audit.Subject(r.Subject.String),
		Success: r.Success, Details: audit.Details{},
	}
	if err := json.Unmarshal([]byte(r.Details), &e.Details); err != nil {
		return audit.Event{}, fault.Wrap(fault.Internal, "the details of an audit event cannot be read", err)
	}
	return e, nil
}

// Append implements authstore.AuditLog.
func (l *AuditLog) Append(ctx context.Context, events ...audit.Event) error {
	if len(events) == 0 {
		return ctx.Err()
	}
	rows := make([]*eventRow, len(events))
	for i, e := range events {
		var err error
		if rows[i], err = newEventRow(e); err != nil {
			return err
		}
	}
	return l.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		if slices.ContainsFunc(events, func(e audit.Event) bool {
			return e.Category == audit.AccountChange || e.Category == audit.CredentialChange
		}) {
			l.db.NoteChange(ctx)
		}
		_, err := tx.NewInsert().Model(&rows).Exec(ctx)
		return l.db.ClassifyError(err)
	})
}

// Search implements authstore.AuditLog. It does not read the whole history of a person to return
// the total or a later page: see audit_counts.go.
func (l *AuditLog) Search(ctx context.Context, q authstore.AuditQuery) (events []audit.Event, total int, err error) {
	if q.Limit < 1 || q.Limit > auth.MaxPage || q.Offset < 0 {
		return nil, 0, fault.New(fault.Invalid, "limit must be 1 to 1000 and offset 0 or more").
			WithCode(auth.CodeValidation)
	}
	type result struct {
		events []audit.Event
		total  int
	}
	found, err := database.Read(ctx, l.db, func(ctx context.Context, db bun.IDB) (r result, err error) {
		r.events, r.total, err = l.searchEvents(ctx, db, withIndex(q))
		return r, err
	})
	return found.events, found.total, err
}

func (l *AuditLog) searchEvents(
	ctx context.Context, db bun.IDB, q authstore.AuditQuery,
) (events []audit.Event, total int, err error) {
	if q.Subject == "" || q.ID != "" || q.Uncounted || q.Most > 0 || q.Server != "" || q.Run != "" || q.Whole || q.Actor != "" || q.Success != nil { // days do not count by these
		return l.searchUncounted(ctx, db, q)
	}
	if q.Offset == 0 {
		events, err = l.readPage(ctx, db, q)
		if err != nil || (len(events) > 0 && len(events) < q.Limit) {
			return events, len(events), err
		}
		counted, err := l.readCountedDays(ctx, db, q)
		if err != nil {
			return nil, 0, err
		}
		total, err = l.countMatching(ctx, db, q, counted)
		return events, total, err
	}
	return l.laterPage(ctx, db, q)
}

// laterPage searches with an offset. It skips the counted days before the page.
func (l *AuditLog) laterPage(
	ctx context.Context, db bun.IDB, q authstore.AuditQuery,
) (events []audit.Event, total int, err error) {
	counted, err := l.readCountedDays(ctx, db, q)
	if err != nil {
		return nil, 0, err
	}
	if events, err = l.readPage(ctx, db, counted.skipDays(q)); err != nil {
		return nil, 0, err
	}
	if len(events) > 0 && len(events) < q.Limit {
		return events, q.Offset + len(events), nil
	}
	total, err = l.countMatching(ctx, db, q, counted)
	return events, total, err
}

// searchUncounted searches without the counts of days, because each count is for one person.
func (l *AuditLog) searchUncounted(
	ctx context.Context, db bun.IDB, q authstore.AuditQuery,
) (events []audit.Event, total int, err error) {
	if q.Most > 0 && q.Offset > 0 && !q.Uncounted {
		return l.searchFarther(ctx, db, q)
	}
	if events, err = l.readPage(ctx, db, q); err != nil || q.Uncounted {
		return events, 0, err
	}
	total, err = l.countMatching(ctx, db, q, countedDays{})
	return events, total, err
}

// searchFarther searches with an offset and counts up to q.Most: it passes the events before the page
// once, for both.
func (l *AuditLog) searchFarther(
	ctx context.Context, db bun.IDB, q authstore.AuditQuery,
) (events []audit.Event, total int, err error) {
	var ids []audit.EventID
	from := l.selectMatching(db.NewSelect().TableExpr("audit_events"), q).Column("id").
		Order("time DESC", "id DESC").Offset(q.Offset).Limit(max(q.Limit, q.Most-q.Offset) + 1)
	if err = from.Scan(ctx, &ids); err != nil {
		return nil, 0, l.db.ClassifyError(err)
	}
	if len(ids) == 0 {
		total, err = l.countMatching(ctx, db, q, countedDays{})
		return nil, total, err
	}
	page := db.NewSelect().TableExpr("audit_events").ColumnExpr("*").
		Where("id IN (?)", bun.List(ids[:min(q.Limit, len(ids))])).Order("time DESC", "id DESC")
	events, err = l.scanEvents(ctx, page)
	return events, q.Offset + len(ids), err
}

// Page implements authstore.AuditLog.
func (l *AuditLog) Page(
	ctx context.Context, q authstore.AuditQuery, after authstore.AuditPlace,
) ([]audit.Event, error) {
	return database.Read(ctx, l.db, func(ctx context.Context, db bun.IDB) ([]audit.Event, error) {
		q.Offset = 0
		s := l.selectPage(db, withIndex(q))
		if after.ID != "" {
			s.Where("(time, id) < (?, ?)", database.NewInstant(after.Time), after.ID)
		}
		return l.scanEvents(ctx, s)
	})
}

func (l *AuditLog) readPage(ctx context.Context, db bun.IDB, q authstore.AuditQuery) ([]audit.Event, error) {
	return l.scanEvents(ctx, l.selectPage(db, q))
}

func (l *AuditLog) scanEvents(ctx context.Context, s *bun.SelectQuery) ([]audit.Event, error) {
	rows, err := l.scanRows(ctx, s)
	if err != nil {
		return nil, err
	}
	return toEvents(rows)
}

func (l *AuditLog) scanRows(ctx context.Context, s *bun.SelectQuery) (rows []eventRow, err error) {
	err = s.Scan(ctx, &rows)
	return rows, l.db.ClassifyError(err)
}

func toEvents(rows []eventRow) (events []audit.Event, err error) {
	events = make([]audit.Event, len(rows))
	for i := range rows {
		if events[i], err = rows[i].toEvent(); err != nil {
			return nil, err
		}
	}
	return events, nil
}

// DeleteBefore implements authstore.AuditLog.
func (l *AuditLog) DeleteBefore(ctx context.Context, before time.Time, limit int) (n int, err error) {
	if limit < 1 {
		return 0, ctx.Err()
	}
	err = l.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) (err error) {
		old := tx.NewSelect().TableExpr("audit_events").Column("id").Where("time < ?", database.NewInstant(before)).
			Order("time", "id").Limit(limit)
		n, err = l.db.AffectedRows(tx.NewDelete().Model((*eventRow)(nil)).Where("id IN (?)", old).Exec(ctx))
		if err != nil || n == 0 {
			return err
		}
		return l.forgetDays(ctx, tx, before)
	})
	return n, err
}

// selectPage selects one page. It chooses the events of a later page from an index alone, so that
// it reads only their rows, whatever the offset is. For the first page this would only find each
// row twice.
func (l *AuditLog) selectPage(db bun.IDB, q authstore.AuditQuery) *bun.SelectQuery {
	chosen := l.selectMatching(db.NewSelect().TableExpr("audit_events"), q).Order("time DESC", "id DESC").Limit(q.Limit)
	if q.Offset > 0 {
		chosen = db.NewSelect().TableExpr("audit_events").
			Where("id IN (?)", chosen.Column("id").Offset(q.Offset)).Order("time DESC", "id DESC")
	}
	return chosen.ColumnExpr("*")
}

// Follow implements authstore.AuditLog. SQLite has one writer at a time, so the order in which rows
// are added is that of their commits. Migration 0043 of PostgreSQL shows why no event is missed
// there.
func (l *AuditLog) Follow(
	ctx context.Context, q authstore.AuditQuery, after authstore.AuditPlace,
) ([]audit.Event, authstore.AuditPlace, error) {
	rows, err := database.Read(ctx, l.db, func(ctx context.Context, db bun.IDB) ([]eventRow, error) {
		if after.ID != "" && after.Time.IsZero() {
			row := new(eventRow)
			if err := l.selectStream(db).Where("id = ?", after.ID).Scan(ctx, row); err != nil {
				return nil, l.db.ClassifyError(err) // fault.NotFound if it does not exist
			}
			after = row.place()
		}
		if l.db.Kind() == dialect.PG {
			return l.followPostgres(ctx, db, q, after)
		}
		return l.scanRows(ctx, l.selectMatching(l.selectStream(db), q).
			Where("rowid > ?", after.Position).Order("rowid").Limit(q.Limit))
	})
	if err != nil || len(rows) == 0 {
		return nil, after, err
	}
	events, err := toEvents(rows)
	return events, rows[len(rows)-1].place(), err
}

func (r *eventRow) place() authstore.AuditPlace {
	return authstore.AuditPlace{Time: r.Time.Time, ID: r.ID, Position: r.Position}
}

// selectStream selects events with their positions.
func (l *AuditLog) selectStream(db bun.IDB) *bun.SelectQuery {
	s := db.NewSelect().TableExpr("audit_events").ColumnExpr("*")
	if l.db.Kind() != dialect.PG {
		s.ColumnExpr("rowid AS _position")
	}
	return s
}

// followPostgres returns the events that follow a place: first those without a position, then those
// with one, up to the bound. The bound is read before the events, by a statement of its own.
func (l *AuditLog) followPostgres(
	ctx context.Context, db bun.IDB, q authstore.AuditQuery, after authstore.AuditPlace,
) (rows []eventRow, err error) {
	if after.Position == 0 {
		old := l.selectMatching(l.selectStream(db), q).Where("_position IS NULL").
			Where("time <= (SELECT until FROM audit_unnumbered)").Order("time", "id").Limit(q.Limit)
		if after.ID != "" {
			old.Where("(time, id) > (?, ?)", database.NewInstant(after.Time), after.ID)
		}
		if rows, err = l.scanRows(ctx, old); err != nil || len(rows) == q.Limit {
			return rows, err
		}
	}
	var bound int64
	if err := l.db.ScanInto(ctx, db, &bound, "SELECT audit_bound()"); err != nil {
		return nil, err
	}
	more, err := l.scanRows(ctx, l.selectMatching(l.selectStream(db), q).
		Where("_position > ?", after.Position).Where("_position <= ?", bound).Order("_position").
		Limit(q.Limit-len(rows)))
	return append(rows, more...), err
}
