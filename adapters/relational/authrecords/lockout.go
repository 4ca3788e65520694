package authrecords

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/auth"
)

// lockoutStore stores the counts of failed sign-ins. It implements [authstore.Lockouts].
type lockoutStore struct{ db *database.DB }

type lockoutRow struct {
	bun.BaseModel `bun:"table:lockouts,alias:l"`

	Key         auth.LockoutKey   `bun:"key,pk"`
	FailedAt    database.Instants `bun:"failed_at"`
	LockedUntil database.Instant  `bun:"locked_until"`
	Latest      database.Instant  `bun:"latest"` // the last failure or the end of the lock, for DeleteBefore
}

func newLockoutRow(key auth.LockoutKey, l *auth.Lockout) *lockoutRow {
	latest := l.Latest()
	if latest.IsZero() {
		latest = time.Unix(0, 0) // no NULL, so that one range of the index has all lockouts that are over
	}
	return &lockoutRow{
		Key: key, FailedAt: l.Failures, LockedUntil: database.NewInstant(l.LockedUntil),
		Latest: database.NewInstant(latest),
	}
}

func (r *lockoutRow) toLockout() auth.Lockout {
	return auth.Lockout{Failures: r.FailedAt, LockedUntil: r.LockedUntil.Time}
}

// Update implements authstore.Lockouts. It first inserts the row if there is no row to lock. If
// there is one, the statement does not change it, but locks it.
func (s *lockoutStore) Update(ctx context.Context, key auth.LockoutKey, change func(*auth.Lockout) error) error {
	return s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		row := newLockoutRow(key, &auth.Lockout{})
		err := tx.NewInsert().Model(row).On("CONFLICT (key) DO UPDATE").Set("key = EXCLUDED.key").
			Returning("*").Scan(ctx)
		if err != nil {
			return s.db.ClassifyError(err)
		}
		l := row.toLockout()
		if err := change(&l); err != nil {
			return err
		}
		_, err = tx.NewUpdate().Model(newLockoutRow(key, &l)).WherePK().Exec(ctx)
		return s.db.ClassifyError(err)
	})
}

func (s *lockoutStore) Get(ctx context.Context, key auth.LockoutKey) (auth.Lockout, error) {
	return database.Read(ctx, s.db, func(ctx context.Context, db bun.IDB) (auth.Lockout, error) {
		row := new(lockoutRow)
		err := db.NewSelect().Model(row).Where("key = ?", key).Scan(ctx)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return auth.Lockout{}, s.db.ClassifyError(err)
		}
		return row.toLockout(), nil
	})
}

func (s *lockoutStore) DeleteBefore(ctx context.Context, before time.Time) (int, error) {
	return s.db.InBatches(ctx, func(ctx context.Context, tx bun.IDB) (int, error) {
		old := s.db.LockForChange(tx.NewSelect().Model((*lockoutRow)(nil)).Column("key").
			Where("latest < ?", database.NewInstant(before)).Order("latest", "key").Limit(database.BatchSize))
		return s.db.AffectedRows(tx.NewDelete().Model((*lockoutRow)(nil)).Where("key IN (?)", old).Exec(ctx))
	})
}
