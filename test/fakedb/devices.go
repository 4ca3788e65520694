package fakedb

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// Devices implements [authstore.Devices].
type Devices struct{ db *Database }

// NewDevices returns the devices of a database.
func NewDevices(db *Database) *Devices { return &Devices{db} }

// Ensure implements [authstore.Devices].
func (s *Devices) Ensure(ctx context.Context, d auth.Device) (stored auth.Device, created bool, err error) {
	err = s.db.run(ctx, func(ctx context.Context) error {
		if stored, err = s.Find(ctx, d.UserID, d.Identity); !fault.Is(err, fault.NotFound) {
			return err
		}
		stored, created = detached(d), true
		return cmp.Or(s.db.accounts.refer(d.UserID), s.db.devices.insert(ctx, d))
	})
	if err != nil {
		return auth.Device{}, false, err
	}
	return stored, created, nil
}

// Find implements [authstore.Devices].
func (s *Devices) Find(ctx context.Context, user auth.UserID, identity auth.DeviceIdentity) (auth.Device, error) {
	found, err := s.db.devices.list(ctx, func(d auth.Device) bool {
		return d.UserID == user && d.Identity == identity && !d.Revoked
	}, newestDevice)
	if err == nil && len(found) == 0 {
		err = s.db.devices.errNotFound()
	}
	if err != nil {
		return auth.Device{}, err
	}
	return found[0], nil
}

// Get implements [authstore.Devices].
func (s *Devices) Get(ctx context.Context, id auth.DeviceID) (auth.Device, error) {
	return s.db.devices.find(ctx, id)
}

// Update implements [authstore.Devices].
func (s *Devices) Update(ctx context.Context, id auth.DeviceID, change func(*auth.Device) error) error {
	return s.db.devices.update(ctx, id, func(d *auth.Device) error {
		err := change(d)
		d.ID = id
		return err
	})
}

// List implements [authstore.Devices].
func (s *Devices) List(
	ctx context.Context, user auth.UserID, page auth.PageRequest,
) (list []auth.Device, total int, err error) {
	list, err = s.db.devices.list(ctx, func(d auth.Device) bool { return d.UserID == user }, newestDevice)
	list, total = cutPage(list, page)
	return list, total, err
}

func newestDevice(a, b auth.Device) int {
	return cmp.Or(b.LastSeen.Compare(a.LastSeen), cmp.Compare(b.ID, a.ID))
}

// DeleteUnused implements [authstore.Devices].
func (s *Devices) DeleteUnused(ctx context.Context, before time.Time) (int, error) {
	before = storedTime(before)
	return result(ctx, s.db, func(ctx context.Context) (int, error) {
		used := map[auth.DeviceID]bool{}
		for _, session := range s.db.sessions.rows {
			used[session.DeviceID] = true
		}
		n, err := s.db.devices.removeAll(ctx, func(d auth.Device) bool {
			return (d.Revoked || !d.Confirmed) && d.LastSeen.Before(before) && !used[d.ID]
		})
		if err != nil {
			return 0, err
		}
		_, err = s.db.deviceTokens.removeAll(ctx, func(t auth.DeviceToken) bool {
			return !s.db.devices.has(t.DeviceID)
		})
		return n, err
	})
}

// DeviceTokens implements [authstore.DeviceTokens].
type DeviceTokens struct{ db *Database }

// NewDeviceTokens returns the device tokens of a database.
func NewDeviceTokens(db *Database) *DeviceTokens { return &DeviceTokens{db} }

// Add implements [authstore.DeviceTokens].
func (s *DeviceTokens) Add(ctx context.Context, token auth.DeviceToken, keep int) error {
	return s.db.run(ctx, func(ctx context.Context) error {
		if !s.db.devices.has(token.DeviceID) {
			return s.db.devices.errNotFound()
		}
		if err := s.db.deviceTokens.insert(ctx, token); err != nil {
			return err
		}
		tokens, err := s.db.deviceTokens.list(ctx, func(t auth.DeviceToken) bool {
			return t.DeviceID == token.DeviceID
		}, newestToken)
		for _, old := range tokens[len(first(tokens, keep)):] {
			err = cmp.Or(err, s.db.deviceTokens.remove(ctx, old.Hash))
		}
		return err
	})
}

func newestToken(a, b auth.DeviceToken) int {
	return cmp.Or(b.IssuedAt.Compare(a.IssuedAt), slices.Compare(b.Hash[:], a.Hash[:]))
}

// Find implements [authstore.DeviceTokens].
func (s *DeviceTokens) Find(ctx context.Context, hash auth.TokenHash) (auth.DeviceToken, error) {
	return s.db.deviceTokens.find(ctx, hash)
}

// Remove implements [authstore.DeviceTokens].
func (s *DeviceTokens) Remove(ctx context.Context, device auth.DeviceID) error {
	_, err := s.db.deviceTokens.removeAll(ctx, func(t auth.DeviceToken) bool { return t.DeviceID == device })
	return err
}
