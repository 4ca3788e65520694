package authrecords

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/ports/authstore"
)

var _ authstore.PendingLogins = (*PendingLogins)(nil)

// PendingLogins keeps logins that wait for their second factor. It implements [authstore.PendingLogins].
type PendingLogins struct{ db *database.DB }

// NewPendingLogins returns the pending logins of a database.
func NewPendingLogins(db *database.DB) *PendingLogins { return &PendingLogins{db: db} }

type pendingRow struct {
	bun.BaseModel `bun:"table:pending_logins"`

	UserID         auth.UserID         `bun:"user_id,pk"`
	DeviceIdentity auth.DeviceIdentity `bun:"device_identity,pk"`
	Subject        auth.LockoutKey     `bun:"subject"`
	Proven         bool                `bun:"proven"`
	CreatedAt      database.Instant    `bun:"created_at"`
	ExpiresAt      database.Instant    `bun:"expires_at"`
}

// Put keeps a pending login in the place of an earlier one.
func (s *PendingLogins) Put(ctx context.Context, p auth.PendingLogin) error {
	return s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		_, err := tx.NewDelete().Model((*pendingRow)(nil)).
			Where("user_id = ?", p.UserID).Where("expires_at <= ?", database.NewInstant(p.CreatedAt)).Exec(ctx)
		if err != nil {
			return s.db.ClassifyError(err)
		}
		_, err = tx.NewInsert().Model(&pendingRow{
			UserID: p.UserID, DeviceIdentity: p.DeviceIdentity, Subject: p.Subject, Proven: p.Proven,
			CreatedAt: database.NewInstant(p.CreatedAt), ExpiresAt: database.NewInstant(p.ExpiresAt),
		}).On("CONFLICT (user_id, device_identity) DO UPDATE").
			Set("subject = EXCLUDED.subject").Set("proven = EXCLUDED.proven").
			Set("created_at = EXCLUDED.created_at").Set("expires_at = EXCLUDED.expires_at").Exec(ctx)
		return s.db.ClassifyError(err)
	})
}

// Find returns a pending login.
func (s *PendingLogins) Find(
	ctx context.Context, user auth.UserID, identity auth.DeviceIdentity,
) (auth.PendingLogin, error) {
	return database.Read(ctx, s.db, func(ctx context.Context, db bun.IDB) (auth.PendingLogin, error) {
		row := new(pendingRow)
		err := db.NewSelect().Model(row).
			Where("user_id = ?", user).Where("device_identity = ?", identity).Scan(ctx)
		if err != nil {
			return auth.PendingLogin{}, classifyLookup(s.db, err, "pending login")
		}
		return auth.PendingLogin{
			UserID: row.UserID, DeviceIdentity: row.DeviceIdentity, Subject: row.Subject, Proven: row.Proven,
			CreatedAt: row.CreatedAt.Time, ExpiresAt: row.ExpiresAt.Time,
		}, nil
	})
}

// Take removes a pending login for one of its callers.
func (s *PendingLogins) Take(ctx context.Context, user auth.UserID, identity auth.DeviceIdentity) error {
	return s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		n, err := s.db.AffectedRows(tx.NewDelete().Model((*pendingRow)(nil)).
			Where("user_id = ?", user).Where("device_identity = ?", identity).Exec(ctx))
		if err == nil && n == 0 {
			return noSuch("pending login")
		}
		return err
	})
}

// RemoveAll removes all pending logins of a person.
func (s *PendingLogins) RemoveAll(ctx context.Context, user auth.UserID) error {
	return s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		_, err := tx.NewDelete().Model((*pendingRow)(nil)).Where("user_id = ?", user).Exec(ctx)
		return s.db.ClassifyError(err)
	})
}

// DeleteExpired removes the pending logins that ended before a time.
func (s *PendingLogins) DeleteExpired(ctx context.Context, before time.Time) (int, error) {
	return s.db.InBatches(ctx, func(ctx context.Context, tx bun.IDB) (int, error) {
		old := tx.NewSelect().Model((*pendingRow)(nil)).Column("user_id", "device_identity").
			Where("expires_at < ?", database.NewInstant(before)).Order("expires_at").Limit(database.BatchSize)
		return s.db.AffectedRows(tx.NewDelete().Model((*pendingRow)(nil)).
			Where("(user_id, device_identity) IN (?)", old).Exec(ctx))
	})
}
