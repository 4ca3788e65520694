package authrecords

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/ports/authstore"
)

// The table audit_day_counts has the number of audit events of each person by day and type.
// CountHour adds one hour of events at a time. With it, a search need not read the whole history of
// a person to return the total or a later page. The counts are complete from the start of
// countedPart.FirstDay to countedPart.Until. Events outside of this part, and parts of days, are
// counted in audit_events.

const (
	day  = 24 * time.Hour
	hour = time.Hour
)

// countedPart is the part of the audit log that audit_day_counts covers.
type countedPart struct {
	bun.BaseModel `bun:"table:audit_counted,alias:c"`

	ID       int              `bun:"id,pk"`
	FirstDay int64            `bun:"first_day"` // days since the epoch
	Until    database.Instant `bun:"counted_until"`
}

// dayNumber returns the day of a time: days since the epoch in UTC.
func dayNumber(t time.Time) int64 {
	n := t.Unix() / int64(day/time.Second)
	if startOfDay(n).After(t) { // before 1970 the division rounds up
		n--
	}
	return n
}

func startOfDay(number int64) time.Time { return time.Unix(number*int64(day/time.Second), 0).UTC() }

// CountHour implements authstore.AuditLog. It adds the first hour that has events and is not
// counted yet. Of parallel calls, one counts the hour.
func (l *AuditLog) CountHour(ctx context.Context, until time.Time) (counted bool, err error) {
	err = l.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		counted = false
		part := new(countedPart)
		if err := l.db.LockForChange(tx.NewSelect().Model(part).Where("id = 1")).Scan(ctx); err != nil {
			return l.db.ClassifyError(err)
		}
		var next []eventRow
		err := tx.NewSelect().Model(&next).Column("time").Where("time >= ?", part.Until).
			Order("time").Limit(1).Scan(ctx)
		if err != nil || len(next) == 0 {
			return l.db.ClassifyError(err)
		}
		start := next[0].Time.Truncate(hour)
		end := start.Add(hour)
		if end.After(until) {
			return nil
		}
		counted = true
		if err := l.addToDay(ctx, tx, start, end); err != nil {
			return err
		}
		part.Until = database.NewInstant(end)
		_, err = tx.NewUpdate().Model(part).Column("counted_until").WherePK().Exec(ctx)
		return l.db.ClassifyError(err)
	})
	return counted, err
}

// addToDay adds the events from start until before end to the counts of the day of start.
func (l *AuditLog) addToDay(ctx context.Context, tx bun.IDB, start, end time.Time) error {
	_, err := l.db.ExecStatement(ctx, tx, `INSERT INTO audit_day_counts AS d (user_id, day, type, events)
		SELECT user_id, ?, type, count(*) FROM audit_events
			WHERE time >= ? AND time < ? AND user_id IS NOT NULL GROUP BY user_id, type
		ON CONFLICT (user_id, day, type) DO UPDATE SET events = d.events + excluded.events`,
		dayNumber(start), database.NewInstant(start), database.NewInstant(end))
	return err
}

// forgetDays removes the counts up to the day of a time. The events before this time were removed.
func (l *AuditLog) forgetDays(ctx context.Context, tx bun.IDB, before time.Time) error {
	first := dayNumber(before) + 1
	moved, err := l.db.ExecStatement(ctx, tx, "UPDATE audit_counted SET first_day = ? WHERE id = 1 AND first_day < ?",
		first, first)
	if err != nil || moved == 0 {
		return err
	}
	_, err = l.db.ExecStatement(ctx, tx, "DELETE FROM audit_day_counts WHERE day < ?", first)
	return err
}

// dayCount is the number of events on a counted day that match a query.
type dayCount struct {
	day    int64
	events int
}

// countedDays are the counted days in the range of a query: all events from the time from until
// before the time to, the newest day first. Both times are zero if no day of the range is counted.
type countedDays struct {
	from, to time.Time
	days     []dayCount
	events   int // of all days
	newer    int // matching events at or after to
}

// readCountedDays returns the counted days of a person that are completely in the range of a query.
func (l *AuditLog) readCountedDays(ctx context.Context, db bun.IDB, q authstore.AuditQuery) (countedDays, error) {
	var part []struct {
		FirstDay int64            `bun:"first_day"`
		Until    database.Instant `bun:"counted_until"`
		Day      *int64           `bun:"day"`
		Events   *int             `bun:"events"`
	}
	first, before := wholeDays(q)
	// One statement, so that the counts are those of the part that it returns.
	counts := db.NewSelect().TableExpr("audit_counted AS c").
		Join("LEFT JOIN audit_day_counts AS d").
		JoinOn("d.user_id = ?", q.Subject).JoinOn("d.day >= ?", first).JoinOn("d.day >= c.first_day")
	if q.Category != "" {
		counts.JoinOn("d.type = ?", q.Category)
	}
	if !q.Before.IsZero() {
		counts.JoinOn("(d.day < ? OR c.counted_until <= ?)", before, database.NewInstant(q.Before))
	}
	err := counts.ColumnExpr("c.first_day, c.counted_until, d.day, CAST(sum(d.events) AS bigint) AS events").
		GroupExpr("c.first_day, c.counted_until, d.day").OrderExpr("d.day DESC").Scan(ctx, &part)
	if err != nil || len(part) == 0 {
		return countedDays{}, l.db.ClassifyError(err)
	}
	var c countedDays
	c.from, c.to = startOfDay(max(first, part[0].FirstDay)), part[0].Until.Time
	if !q.Before.IsZero() && q.Before.Before(c.to) {
		c.to = startOfDay(before)
	}
	if !c.from.Before(c.to) {
		return countedDays{}, nil
	}
	for _, row := range part {
		if row.Day != nil {
			c.days = append(c.days, dayCount{*row.Day, *row.Events})
			c.events += *row.Events
		}
	}
	c.newer, err = l.selectMatching(db.NewSelect().TableExpr("audit_events"), q).Where("time >= ?",
		database.NewInstant(c.to)).Count(ctx)
	return c, l.db.ClassifyError(err)
}

// wholeDays returns the first day that is completely after q.After, and the day of q.Before, which
// is the first day that is not completely before it.
func wholeDays(q authstore.AuditQuery) (first, before int64) {
	if !q.After.IsZero() {
		first = dayNumber(q.After) + 1
	}
	return first, dayNumber(q.Before)
}

// countMatching returns how many events match a query. The numbers for counted days and for newer
// events are known. It counts older events with an index.
func (l *AuditLog) countMatching(ctx context.Context, db bun.IDB, q authstore.AuditQuery, c countedDays) (int, error) {
	older := l.selectMatching(db.NewSelect().TableExpr("audit_events"), q)
	if !c.to.IsZero() {
		older.Where("time < ?", database.NewInstant(c.from))
	}
	if q.Most > 0 {
		older = db.NewSelect().TableExpr("(?) AS counted", older.ColumnExpr("1").Limit(max(q.Most, q.Offset+q.Limit)+1))
	}
	n, err := older.Count(ctx)
	return c.newer + c.events + n, l.db.ClassifyError(err)
}

// skipDays returns a query for the same page as q with a smaller offset: its range ends before the
// counted days that the offset skips completely.
func (c countedDays) skipDays(q authstore.AuditQuery) authstore.AuditQuery {
	if c.to.IsZero() || q.Offset < c.newer {
		return q
	}
	q.Offset -= c.newer
	q.Before = c.to
	for _, d := range c.days {
		if q.Offset < d.events {
			q.Before = startOfDay(d.day + 1)
			if q.Before.After(c.to) {
				q.Before = c.to
			}
			return q
		}
		q.Offset -= d.events
	}
	q.Before = c.from
	return q
}
