package authrecords

import (
	"context"
	"database/sql"
	"errors"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/auth"
)

// deviceTokenStore stores the hashes of device tokens. It implements [authstore.DeviceTokens].
type deviceTokenStore struct {
	table[auth.DeviceToken, deviceTokenRow]
}

type deviceTokenRow struct {
	bun.BaseModel `bun:"table:device_tokens"`

	Hash     hash             `bun:"hash,pk"`
	DeviceID auth.DeviceID    `bun:"device_id"`
	IssuedAt database.Instant `bun:"issued_at"`
}

func newDeviceTokenRow(t auth.DeviceToken) *deviceTokenRow {
	return &deviceTokenRow{Hash: hash(t.Hash), DeviceID: t.DeviceID, IssuedAt: database.NewInstant(t.IssuedAt)}
}

func (r *deviceTokenRow) toDeviceToken() auth.DeviceToken {
	return auth.DeviceToken{Hash: auth.TokenHash(r.Hash), DeviceID: r.DeviceID, IssuedAt: r.IssuedAt.Time}
}

// Add implements authstore.DeviceTokens. It locks the row of the device first, because two parallel
// calls would otherwise not see each other's token.
func (s *deviceTokenStore) Add(ctx context.Context, t auth.DeviceToken, keep int) error {
	return s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		var device auth.DeviceID
		err := s.db.LockForChange(tx.NewSelect().Model((*deviceRow)(nil)).Column("id").Where("id = ?",
			t.DeviceID)).Scan(ctx, &device)
		if err != nil {
			if errors.Is(err, sql.ErrNoRows) {
				return noSuchRecord("device")
			}
			return s.db.ClassifyError(err)
		}
		if _, err := tx.NewInsert().Model(newDeviceTokenRow(t)).Exec(ctx); err != nil {
			return s.db.ClassifyError(err)
		}
		old := tx.NewDelete().Model((*deviceTokenRow)(nil)).Where("device_id = ?", t.DeviceID)
		if keep > 0 {
			old.Where("hash NOT IN (?)", tx.NewSelect().Model((*deviceTokenRow)(nil)).Column("hash").
				Where("device_id = ?", t.DeviceID).Order("issued_at DESC", "hash DESC").Limit(keep))
		}
		_, err = old.Exec(ctx)
		return s.db.ClassifyError(err)
	})
}

func (s *deviceTokenStore) Find(ctx context.Context, h auth.TokenHash) (auth.DeviceToken, error) {
	return s.find(ctx, "hash = ?", hash(h))
}

func (s *deviceTokenStore) Remove(ctx context.Context, device auth.DeviceID) error {
	return s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		_, err := tx.NewDelete().Model((*deviceTokenRow)(nil)).Where("device_id = ?", device).Exec(ctx)
		return s.db.ClassifyError(err)
	})
}
