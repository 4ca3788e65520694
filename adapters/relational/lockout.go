package relational

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/ports/lockoutstore"
)

var _ lockoutstore.Store = (*Lockouts)(nil)

// Lockouts keeps the counts of failed sign-ins. It answers ports/lockoutstore.
type Lockouts struct{ db *DB }

// NewLockouts returns the lockouts of a database.
func NewLockouts(db *DB) *Lockouts { return &Lockouts{db: db} }

type lockoutRow struct {
	bun.BaseModel `bun:"table:lockouts,alias:l"`

	Key         auth.LockoutKey `bun:"key,pk"`
	Failures    int             `bun:"failures"`
	FirstAt     instant         `bun:"first_at"`
	LockedUntil instant         `bun:"locked_until"`
}

func (r *lockoutRow) lockout() auth.Lockout {
	return auth.Lockout{Failures: r.Failures, FirstAt: r.FirstAt.Time, LockedUntil: r.LockedUntil.Time}
}

// Update lets change alter a subject's lockout. Where there is no row yet one
// is made first, since there would be nothing to lock; the insertion that does
// nothing to a row still locks it.
func (s *Lockouts) Update(ctx context.Context, key auth.LockoutKey, change func(*auth.Lockout) error) error {
	return s.db.write(ctx, func(ctx context.Context, tx bun.IDB) error {
		row := &lockoutRow{Key: key}
		err := tx.NewInsert().Model(row).On("CONFLICT (key) DO UPDATE").Set("key = EXCLUDED.key").
			Returning("*").Scan(ctx)
		if err != nil {
			return s.db.fault(err)
		}
		l := row.lockout()
		if err := change(&l); err != nil {
			return err
		}
		row = &lockoutRow{Key: key, Failures: l.Failures, FirstAt: at(l.FirstAt), LockedUntil: at(l.LockedUntil)}
		_, err = tx.NewUpdate().Model(row).WherePK().Exec(ctx)
		return s.db.fault(err)
	})
}

// Get returns the subject's lockout.
func (s *Lockouts) Get(ctx context.Context, key auth.LockoutKey) (auth.Lockout, error) {
	row := new(lockoutRow)
	err := s.db.read(ctx).NewSelect().Model(row).Where("key = ?", key).Scan(ctx)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return auth.Lockout{}, s.db.fault(err)
	}
	return row.lockout(), nil
}

// DeleteBefore removes the lockouts whose window began and whose lock ended
// before a time; those that were reset have neither.
func (s *Lockouts) DeleteBefore(ctx context.Context, before time.Time) (int, error) {
	return s.db.inBatches(ctx, func(ctx context.Context, tx bun.IDB) (int, error) {
		old := s.db.forChange(tx.NewSelect().Model((*lockoutRow)(nil)).Column("key").
			Where("first_at < ? OR first_at IS NULL", at(before)).
			Where("locked_until < ? OR locked_until IS NULL", at(before)).
			Order("key").Limit(batch))
		return s.db.affected(tx.NewDelete().Model((*lockoutRow)(nil)).Where("key IN (?)", old).Exec(ctx))
	})
}
