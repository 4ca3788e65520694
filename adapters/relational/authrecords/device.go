package authrecords

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// maxEnsure limits how often Ensure tries again because a device was revoked before it could read
// it.
const maxEnsure = 10

// deviceStore stores the devices from which people sign in. It implements [authstore.Devices].
type deviceStore struct {
	keyed[auth.DeviceID, auth.Device, deviceRow]
}

type deviceRow struct {
	bun.BaseModel `bun:"table:devices"`

	ID            auth.DeviceID       `bun:"id,pk"`
	UserID        auth.UserID         `bun:"user_id"`
	Identity      auth.DeviceIdentity `bun:"identity"`
	TrustStatus   auth.TrustStatus    `bun:"trust_status"`
	MarkUnproven  bool                `bun:"mark_unproven"`
	Confirmed     bool                `bun:"confirmed"`
	Revoked       bool                `bun:"revoked"`
	FirstSeen     database.Instant    `bun:"first_seen"`
	LastSeen      database.Instant    `bun:"last_seen"`
	Type          string              `bun:"column:type"`
	Browser       string              `bun:"browser"`
	OS            string              `bun:"os"`
	LastIPAddress address             `bun:"last_ip_address"`
	Name          string              `bun:"name"`
}

func newDeviceRow(d auth.Device) *deviceRow {
	return &deviceRow{
		ID: d.ID, UserID: d.UserID, Identity: d.Identity,
		TrustStatus: d.TrustStatus, MarkUnproven: d.MarkUnproven, Confirmed: d.Confirmed, Revoked: d.Revoked,
		FirstSeen: database.NewInstant(d.FirstSeen), LastSeen: database.NewInstant(d.LastSeen),
		Type: d.Type, Browser: d.Browser, OS: d.OS, LastIPAddress: address{d.LastIPAddress}, Name: d.Name,
	}
}

func (r *deviceRow) toDevice() auth.Device {
	return auth.Device{
		ID: r.ID, UserID: r.UserID, Identity: r.Identity,
		TrustStatus: r.TrustStatus, MarkUnproven: r.MarkUnproven, Confirmed: r.Confirmed, Revoked: r.Revoked,
		FirstSeen: r.FirstSeen.Time, LastSeen: r.LastSeen.Time,
		Type: r.Type, Browser: r.Browser, OS: r.OS, LastIPAddress: r.LastIPAddress.Addr, Name: r.Name,
	}
}

// Ensure implements authstore.Devices. Of parallel calls, the unique index lets one create the
// device, and the others read it.
func (s *deviceStore) Ensure(ctx context.Context, d auth.Device) (dev auth.Device, made bool, err error) {
	err = s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		made = false
		for range maxEnsure {
			dev, err = s.findOne(ctx, tx.NewSelect().Where(currentDevice, d.UserID, d.Identity))
			if !fault.Is(err, fault.NotFound) {
				return err
			}
			n, err := s.db.AffectedRows(tx.NewInsert().Model(newDeviceRow(d)).
				On("CONFLICT (user_id, identity) WHERE NOT revoked DO NOTHING").Exec(ctx))
			if err != nil {
				return err
			}
			if n == 1 {
				made = true
				// with the precision of the stored times
				dev, err = s.findOne(ctx, tx.NewSelect().Where("id = ?", d.ID))
				return err
			}
		}
		return fault.New(fault.Unavailable, "the device was revoked too often during the change; try again")
	})
	if err != nil {
		return auth.Device{}, false, err
	}
	return dev, made, nil
}

func (s *deviceStore) Find(ctx context.Context, user auth.UserID, identity auth.DeviceIdentity) (auth.Device, error) {
	return s.find(ctx, currentDevice, user, identity)
}

// DeleteUnused implements authstore.Devices. It also removes the tokens of the devices.
func (s *deviceStore) DeleteUnused(ctx context.Context, before time.Time) (int, error) {
	return s.db.InBatches(ctx, func(ctx context.Context, tx bun.IDB) (int, error) {
		var ids []auth.DeviceID
		unused := tx.NewSelect().Model((*deviceRow)(nil)).Column("id").
			Where("(revoked OR NOT confirmed)").Where("last_seen < ?", database.NewInstant(before)).
			Where("NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.device_id = device_row.id)").
			Order("last_seen").Limit(database.BatchSize)
		if err := s.db.LockForChange(unused).Scan(ctx, &ids); err != nil || len(ids) == 0 {
			return 0, s.db.ClassifyError(err)
		}
		if _, err := tx.NewDelete().Model((*deviceTokenRow)(nil)).Where("device_id IN (?)", bun.List(ids)).
			Exec(ctx); err != nil {
			return 0, s.db.ClassifyError(err)
		}
		return s.db.AffectedRows(tx.NewDelete().Model((*deviceRow)(nil)).Where("id IN (?)",
			bun.List(ids)).Exec(ctx))
	})
}

func (s *deviceStore) List(
	ctx context.Context, user auth.UserID, page auth.PageRequest,
) (list []auth.Device, total int, err error) {
	return s.readPage(ctx, page, func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("user_id = ?", user).Order("last_seen DESC", "id DESC")
	})
}

// currentDevice is the condition for the device of a user and an identity that is not revoked.
const currentDevice = "user_id = ? AND identity = ? AND NOT revoked"

// deviceTokenStore stores the hashes of device tokens. It implements [authstore.DeviceTokens].
type deviceTokenStore struct {
	hashed[auth.DeviceToken, deviceTokenRow]
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
		find := s.db.LockForChange(tx.NewSelect().Model((*deviceRow)(nil)).Column("id").Where("id = ?", t.DeviceID))
		if err := s.db.ClassifyFind(find.Scan(ctx, &device), noSuchRecord("device")); err != nil {
			return err
		}
		if _, err := tx.NewInsert().Model(newDeviceTokenRow(t)).Exec(ctx); err != nil {
			return s.db.ClassifyError(err)
		}
		old := tx.NewDelete().Model((*deviceTokenRow)(nil)).Where("device_id = ?", t.DeviceID)
		if keep > 0 {
			old.Where("hash NOT IN (?)", tx.NewSelect().Model((*deviceTokenRow)(nil)).Column("hash").
				Where("device_id = ?", t.DeviceID).Order("issued_at DESC", "hash DESC").Limit(keep))
		}
		_, err := old.Exec(ctx)
		return s.db.ClassifyError(err)
	})
}

func (s *deviceTokenStore) Remove(ctx context.Context, device auth.DeviceID) error {
	return s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		_, err := tx.NewDelete().Model((*deviceTokenRow)(nil)).Where("device_id = ?", device).Exec(ctx)
		return s.db.ClassifyError(err)
	})
}
