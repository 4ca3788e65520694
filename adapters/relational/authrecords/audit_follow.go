package authrecords

import (
	"context"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/ports/authstore"
)

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
