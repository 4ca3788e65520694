package authrecords

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
)

// maxEnsure bounds how often Ensure meets a device that is revoked before it
// is read.
const maxEnsure = 10

var _ authstore.Devices = (*Devices)(nil)

// Devices keeps what people sign in from. It answers ports/authstore.Devices.
type Devices struct{ db *database.DB }

// NewDevices returns the devices of a database.
func NewDevices(db *database.DB) *Devices { return &Devices{db: db} }

type deviceRow struct {
	bun.BaseModel `bun:"table:devices"`

	ID            auth.DeviceID       `bun:"id,pk"`
	UserID        auth.UserID         `bun:"user_id"`
	Identity      auth.DeviceIdentity `bun:"identity"`
	TrustStatus   auth.TrustStatus    `bun:"trust_status"`
	Confirmed     bool                `bun:"confirmed"`
	Revoked       bool                `bun:"revoked"`
	FirstSeen     database.Instant    `bun:"first_seen"`
	LastSeen      database.Instant    `bun:"last_seen"`
	Type          string              `bun:"type"`
	Browser       string              `bun:"browser"`
	OS            string              `bun:"os"`
	LastIPAddress address             `bun:"last_ip_address"`
}

func rowOfDevice(d auth.Device) *deviceRow {
	return &deviceRow{
		ID: d.ID, UserID: d.UserID, Identity: d.Identity,
		TrustStatus: d.TrustStatus, Confirmed: d.Confirmed, Revoked: d.Revoked,
		FirstSeen: database.NewInstant(d.FirstSeen), LastSeen: database.NewInstant(d.LastSeen),
		Type: d.Type, Browser: d.Browser, OS: d.OS, LastIPAddress: address{d.LastIPAddress},
	}
}

func (r *deviceRow) toDevice() auth.Device {
	return auth.Device{
		ID: r.ID, UserID: r.UserID, Identity: r.Identity,
		TrustStatus: r.TrustStatus, Confirmed: r.Confirmed, Revoked: r.Revoked,
		FirstSeen: r.FirstSeen.Time, LastSeen: r.LastSeen.Time,
		Type: r.Type, Browser: r.Browser, OS: r.OS, LastIPAddress: r.LastIPAddress.Addr,
	}
}

// Ensure returns the user's device of an identity, making it where needed. The
// unique index decides between parallel calls: what loses against it reads
// what won.
func (s *Devices) Ensure(ctx context.Context, d auth.Device) (dev auth.Device, made bool, err error) {
	err = s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		made = false
		for range maxEnsure {
			dev, err = s.findOne(ctx, selectCurrent(tx.NewSelect(), d.UserID, d.Identity))
			if !fault.Is(err, fault.NotFound) {
				return err
			}
			n, err := s.db.AffectedRows(tx.NewInsert().Model(rowOfDevice(d)).
				On("CONFLICT (user_id, identity) WHERE NOT revoked DO NOTHING").Exec(ctx))
			if err != nil {
				return err
			}
			if n == 1 {
				made = true
				dev, err = s.findOne(ctx, tx.NewSelect().Where("id = ?", d.ID)) // with the times as they are stored
				return err
			}
		}
		return fault.New(fault.Unavailable, "", "the device was revoked too often during the change; try again")
	})
	if err != nil {
		return auth.Device{}, false, err
	}
	return dev, made, nil
}

// Find returns the user's device of an identity that is not revoked.
func (s *Devices) Find(ctx context.Context, user auth.UserID, identity auth.DeviceIdentity) (auth.Device, error) {
	return database.Read(ctx, s.db, func(ctx context.Context, db bun.IDB) (auth.Device, error) {
		return s.findOne(ctx, selectCurrent(db.NewSelect(), user, identity))
	})
}

// Get returns a device, revoked or not.
func (s *Devices) Get(ctx context.Context, id auth.DeviceID) (auth.Device, error) {
	return database.Read(ctx, s.db, func(ctx context.Context, db bun.IDB) (auth.Device, error) {
		return s.findOne(ctx, db.NewSelect().Where("id = ?", id))
	})
}

// Update lets change alter a device.
func (s *Devices) Update(ctx context.Context, id auth.DeviceID, change func(*auth.Device) error) error {
	return s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		d, err := s.findOne(ctx, s.db.LockForChange(tx.NewSelect().Where("id = ?", id)))
		if err != nil {
			return err
		}
		if err := change(&d); err != nil {
			return err
		}
		_, err = tx.NewUpdate().Model(rowOfDevice(d)).ExcludeColumn("id").Where("id = ?", id).Exec(ctx)
		return s.db.ClassifyError(err)
	})
}

// DeleteUnused removes devices that nobody misses, with their tokens.
func (s *Devices) DeleteUnused(ctx context.Context, before time.Time) (int, error) {
	return s.db.InBatches(ctx, func(ctx context.Context, tx bun.IDB) (int, error) {
		var ids []auth.DeviceID
		unused := tx.NewSelect().Model((*deviceRow)(nil)).Column("id").
			Where("(revoked OR NOT confirmed)").Where("last_seen < ?", database.NewInstant(before)).
			Where("NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.device_id = device_row.id)").
			Order("last_seen").Limit(database.BatchSize)
		if err := s.db.LockForChange(unused).Scan(ctx, &ids); err != nil || len(ids) == 0 {
			return 0, s.db.ClassifyError(err)
		}
		if _, err := tx.NewDelete().Model((*deviceTokenRow)(nil)).Where("device_id IN (?)", bun.List(ids)).Exec(ctx); err != nil {
			return 0, s.db.ClassifyError(err)
		}
		return s.db.AffectedRows(tx.NewDelete().Model((*deviceRow)(nil)).Where("id IN (?)", bun.List(ids)).Exec(ctx))
	})
}

// List returns the user's devices, last seen first.
func (s *Devices) List(ctx context.Context, user auth.UserID, page auth.PageRequest) (list []auth.Device, total int, err error) {
	rows, total, err := readPage[deviceRow](ctx, s.db, page, func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("user_id = ?", user).Order("last_seen DESC", "id DESC")
	})
	if err != nil {
		return nil, 0, err
	}
	list = make([]auth.Device, len(rows))
	for i := range rows {
		list[i] = rows[i].toDevice()
	}
	return list, total, nil
}

func (s *Devices) findOne(ctx context.Context, q *bun.SelectQuery) (auth.Device, error) {
	row := new(deviceRow)
	if err := q.Model(row).Scan(ctx); err != nil {
		return auth.Device{}, classifyLookup(s.db, err, "device")
	}
	return row.toDevice(), nil
}

// selectCurrent selects the user's device of an identity that is not revoked.
func selectCurrent(q *bun.SelectQuery, user auth.UserID, identity auth.DeviceIdentity) *bun.SelectQuery {
	return q.Where("user_id = ?", user).Where("identity = ?", identity).Where("NOT revoked")
}
