package authrecords

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// table has the queries that most stores share. Its rows have the type R, and its records, as the
// core knows them, the type V.
type table[V, R any] struct {
	db       *database.DB
	noun     string // names a record in error messages
	toRow    func(V) *R
	toRecord func(*R) V
}

func newTable[V, R any](db *database.DB, noun string, toRow func(V) *R, toRecord func(*R) V) table[V, R] {
	return table[V, R]{db, noun, toRow, toRecord}
}

// insert adds a record.
func (t table[V, R]) insert(ctx context.Context, record V) error {
	return t.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		_, err := tx.NewInsert().Model(t.toRow(record)).Exec(ctx)
		return t.db.ClassifyError(err)
	})
}

// insertNew adds a record. It returns fault.Conflict with a message if the key is in use.
func (t table[V, R]) insertNew(ctx context.Context, record V, message string) error {
	return t.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		n, err := t.db.AffectedRows(tx.NewInsert().Model(t.toRow(record)).On("CONFLICT DO NOTHING").Exec(ctx))
		if err == nil && n == 0 {
			return fault.New(fault.Conflict, message)
		}
		return err
	})
}

// changeOne executes a statement. It returns missing if that changes no row.
func changeOne(ctx context.Context, db *database.DB, missing error, statement string, args ...any) error {
	n, err := db.Exec(ctx, statement, args...)
	if err == nil && n == 0 {
		return missing
	}
	return err
}

// find returns the record that meets a condition. It returns fault.NotFound if no record does.
func (t table[V, R]) find(ctx context.Context, condition string, args ...any) (V, error) {
	return database.Read(ctx, t.db, func(ctx context.Context, tx bun.IDB) (V, error) {
		return t.findOne(ctx, tx.NewSelect().Where(condition, args...))
	})
}

// findOne returns the record that a query selects. It returns fault.NotFound if no record does.
func (t table[V, R]) findOne(ctx context.Context, q *bun.SelectQuery) (record V, err error) {
	row := new(R)
	if err := q.Model(row).Scan(ctx); err != nil {
		return record, t.explainError(err)
	}
	return t.toRecord(row), nil
}

// update lets change modify the record with an id, and stores all its columns except the fixed
// ones. It returns fault.NotFound if there is no record, and the error of change.
func (t table[V, R]) update(ctx context.Context, id any, change func(*V) error, fixed ...string) error {
	return t.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		record, err := t.findOne(ctx, t.db.LockForChange(tx.NewSelect().Where("id = ?", id)))
		if err != nil {
			return err
		}
		if err := change(&record); err != nil {
			return err
		}
		_, err = tx.NewUpdate().Model(t.toRow(record)).ExcludeColumn(append(fixed, "id")...).Where("id = ?",
			id).Exec(ctx)
		return t.db.ClassifyError(err)
	})
}

// removeExpired removes the records that expired before a time, and returns how many it removed.
// The columns are the primary key.
func (t table[V, R]) removeExpired(ctx context.Context, before time.Time, columns ...string) (int, error) {
	return t.db.InBatches(ctx, func(ctx context.Context, tx bun.IDB) (int, error) {
		expired := tx.NewSelect().Model((*R)(nil)).Column(columns...).
			Where("expires_at < ?", database.NewInstant(before)).Order("expires_at").Limit(database.BatchSize)
		return t.db.AffectedRows(tx.NewDelete().Model((*R)(nil)).
			Where("("+strings.Join(columns, ", ")+") IN (?)", expired).Exec(ctx))
	})
}

// readList returns the records that a query selects.
func (t table[V, R]) readList(ctx context.Context, which func(*bun.SelectQuery) *bun.SelectQuery) ([]V, error) {
	return database.Read(ctx, t.db, func(ctx context.Context, tx bun.IDB) ([]V, error) {
		var rows []R
		if err := which(tx.NewSelect().Model(&rows)).Scan(ctx); err != nil {
			return nil, t.db.ClassifyError(err)
		}
		return t.toRecords(rows), nil
	})
}

// readPage returns one page of the records that a query selects, and how many it selects in all. It
// counts them only if the page does not show their number.
func (t table[V, R]) readPage(
	ctx context.Context, page auth.PageRequest, which func(*bun.SelectQuery) *bun.SelectQuery,
) (records []V, total int, err error) {
	records, err = database.Read(ctx, t.db, func(ctx context.Context, tx bun.IDB) ([]V, error) {
		var rows []R
		var err error
		q := which(tx.NewSelect().Model(&rows))
		if page.Limit > 0 {
			if err := q.Limit(page.Limit).Offset(page.Offset).Scan(ctx); err != nil {
				return nil, t.db.ClassifyError(err)
			}
			if len(rows) < page.Limit && (len(rows) > 0 || page.Offset == 0) {
				total = page.Offset + len(rows)
				return t.toRecords(rows), nil
			}
		}
		total, err = q.Count(ctx)
		return t.toRecords(rows), t.db.ClassifyError(err)
	})
	if err != nil {
		return nil, 0, err
	}
	return records, total, nil
}

func (t table[V, R]) toRecords(rows []R) []V {
	records := make([]V, len(rows))
	for i := range rows {
		records[i] = t.toRecord(&rows[i])
	}
	return records
}

// explainError classifies the error of a query for one record.
func (t table[V, R]) explainError(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return noSuchRecord(t.noun)
	}
	return t.db.ClassifyError(err)
}

func noSuchRecord(noun string) error {
	return fault.Newf(fault.NotFound, "the %s does not exist", noun).WithCode(auth.CodeNotFound)
}
