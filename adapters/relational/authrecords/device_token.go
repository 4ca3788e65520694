package authrecords

import (
	"context"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/ports/authstore"
)

var _ authstore.DeviceTokens = (*DeviceTokens)(nil)

// DeviceTokens keeps the hashes by which devices prove themselves. It answers
// ports/authstore.DeviceTokens.
type DeviceTokens struct{ db *database.DB }

// NewDeviceTokens returns the device tokens of a database.
func NewDeviceTokens(db *database.DB) *DeviceTokens { return &DeviceTokens{db: db} }

type deviceTokenRow struct {
	bun.BaseModel `bun:"table:device_tokens"`

	Hash     hash             `bun:"hash,pk"`
	DeviceID auth.DeviceID    `bun:"device_id"`
	IssuedAt database.Instant `bun:"issued_at"`
}

// Add stores a token and removes all but the device's newest keep. The
// device's row is locked first: each of two parallel calls would otherwise not
// see the token of the other.
func (s *DeviceTokens) Add(ctx context.Context, t auth.DeviceToken, keep int) error {
	return s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		var device auth.DeviceID
		err := s.db.LockForChange(tx.NewSelect().Model((*deviceRow)(nil)).Column("id").Where("id = ?", t.DeviceID)).Scan(ctx, &device)
		if err != nil {
			return classifyLookup(s.db, err, "device")
		}
		row := &deviceTokenRow{Hash: hash(t.Hash), DeviceID: t.DeviceID, IssuedAt: database.NewInstant(t.IssuedAt)}
		if _, err := tx.NewInsert().Model(row).Exec(ctx); err != nil {
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

// Find returns the token of a hash.
func (s *DeviceTokens) Find(ctx context.Context, h auth.TokenHash) (auth.DeviceToken, error) {
	return database.Read(ctx, s.db, func(ctx context.Context, db bun.IDB) (auth.DeviceToken, error) {
		row := new(deviceTokenRow)
		if err := db.NewSelect().Model(row).Where("hash = ?", hash(h)).Scan(ctx); err != nil {
			return auth.DeviceToken{}, classifyLookup(s.db, err, "device token")
		}
		return auth.DeviceToken{Hash: auth.TokenHash(row.Hash), DeviceID: row.DeviceID, IssuedAt: row.IssuedAt.Time}, nil
	})
}

// Remove deletes all tokens of a device.
func (s *DeviceTokens) Remove(ctx context.Context, device auth.DeviceID) error {
	return s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		_, err := tx.NewDelete().Model((*deviceTokenRow)(nil)).Where("device_id = ?", device).Exec(ctx)
		return s.db.ClassifyError(err)
	})
}
