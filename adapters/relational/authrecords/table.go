package authrecords

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/each"
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

// keyed has the methods of stores whose records have an id.
type keyed[K ~string, V, R any] struct{ table[V, R] }

func newKeyed[K ~string, V, R any](db *database.DB, noun string, toRow func(V) *R, toRecord func(*R) V) keyed[K, V, R] {
	return keyed[K, V, R]{newTable(db, noun, toRow, toRecord)}
}

func (t keyed[K, V, R]) Create(ctx context.Context, record V) error { return t.insert(ctx, record) }

func (t keyed[K, V, R]) Get(ctx context.Context, id K) (V, error) { return t.find(ctx, "id = ?", id) }

func (t keyed[K, V, R]) Update(ctx context.Context, id K, change func(*V) error) error {
	return t.update(ctx, id, change)
}

// hashed has the methods of stores of tokens by their hashes.
type hashed[V, R any] struct{ table[V, R] }

func newHashed[V, R any](db *database.DB, noun string, toRow func(V) *R, toRecord func(*R) V) hashed[V, R] {
	return hashed[V, R]{newTable(db, noun, toRow, toRecord)}
}

func (t hashed[V, R]) Add(ctx context.Context, record V) error { return t.insert(ctx, record) }

func (t hashed[V, R]) Find(ctx context.Context, h auth.TokenHash) (V, error) {
	return t.find(ctx, "hash = ?", hash(h))
}

// spend marks the record with a hash as spent. It returns fault.Conflict if it is spent already. Of
// parallel calls, the condition of the update lets one succeed.
func (t hashed[V, R]) spend(ctx context.Context, h auth.TokenHash, when time.Time) error {
	return t.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		n, err := t.db.AffectedRows(tx.NewUpdate().Model((*R)(nil)).Set("spent_at = ?",
			database.NewInstant(when)).
			Where("hash = ?", hash(h)).Where("spent_at IS NULL").Exec(ctx))
		if err != nil || n == 1 {
			return err
		}
		known, err := tx.NewSelect().Model((*R)(nil)).Where("hash = ?", hash(h)).Exists(ctx)
		switch {
		case err != nil:
			return t.db.ClassifyError(err)
		case known:
			return fault.Newf(fault.Conflict, "the %s is spent", t.noun)
		}
		return noSuchRecord(t.noun)
	})
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
		return record, t.db.ClassifyFind(err, noSuchRecord(t.noun))
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
	return t.removePast(ctx, "expires_at", before, columns...)
}

// removePast is removeExpired for another time than that of expiry.
func (t table[V, R]) removePast(
	ctx context.Context, column bun.Ident, before time.Time, columns ...string,
) (int, error) {
	return t.db.InBatches(ctx, func(ctx context.Context, tx bun.IDB) (int, error) {
		expired := tx.NewSelect().Model((*R)(nil)).Column(columns...).
			Where("? < ?", column, database.NewInstant(before)).OrderExpr("?", column).Limit(database.BatchSize)
		return t.db.AffectedRows(tx.NewDelete().Model((*R)(nil)).
			Where("("+strings.Join(columns, ", ")+") IN (?)", expired).Exec(ctx))
	})
}

// readList returns the records that a query selects.
func (t table[V, R]) readList(ctx context.Context, which func(*bun.SelectQuery) *bun.SelectQuery) ([]V, error) {
	return database.ReadRows(ctx, t.db, which, func(row *R) (V, error) { return t.toRecord(row), nil })
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
	records := each.MapRef(rows, t.toRecord)
	return records
}

func noSuchRecord(noun string) error {
	return fault.Newf(fault.NotFound, "the %s does not exist", noun).WithCode(auth.CodeNotFound)
}

// address is an IP address in a text column. No address is an empty text.
type address struct{ netip.Addr }

func (a address) Value() (driver.Value, error) {
	if !a.IsValid() {
		return "", nil
	}
	return a.String(), nil
}

func (a *address) Scan(src any) error {
	text, err := textOf(src)
	if err != nil || text == "" {
		a.Addr = netip.Addr{}
		return err
	}
	if a.Addr, err = netip.ParseAddr(text); err != nil {
		return fmt.Errorf("an address in the database: %w", err)
	}
	return nil
}

// level is the name of a trust level in a text column. No level is an empty text.
type level struct{ auth.TrustLevel }

func (l level) Value() (driver.Value, error) { return l.String(), nil }

func (l *level) Scan(src any) error {
	text, err := textOf(src)
	if err != nil || text == "" {
		l.TrustLevel = 0
		return err
	}
	if l.TrustLevel, err = auth.ParseTrustLevel(text); err != nil {
		return errors.New("a trust level in the database has no meaning") // not the fault, which would blame the caller
	}
	return nil
}

// textOf returns the value that a driver returns for a text column.
func textOf(src any) (string, error) {
	switch v := src.(type) {
	case string:
		return v, nil
	case []byte:
		return string(v), nil
	default:
		return "", fmt.Errorf("a text in the database has type %T", src)
	}
}

// hash is the hash of a token in a column of bytes.
type hash auth.TokenHash

func (h hash) Value() (driver.Value, error) { return h[:], nil }

func (h *hash) Scan(src any) error {
	if src == nil {
		*h = hash{}
		return nil
	}
	b, ok := src.([]byte)
	if !ok || len(b) != len(h) {
		return fmt.Errorf("a hash in the database is a %T of %d bytes", src, len(b))
	}
	copy(h[:], b)
	return nil
}

// nilToEmpty returns a byte string for a column that does not allow NULL.
func nilToEmpty[B ~[]byte](b B) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// emptyToNil returns the byte string of a column. An empty one is nil.
func emptyToNil[B ~[]byte](b []byte) B {
	if len(b) == 0 {
		return nil
	}
	return b
}
