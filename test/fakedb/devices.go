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
type Devices struct {
	*table[auth.DeviceID, auth.Device]
}

// NewDevices returns the devices of a database.
func NewDevices(db *Database) *Devices { return &Devices{db.devices} }

// Ensure implements [authstore.Devices].
func (s *Devices) Ensure(ctx context.Context, d auth.Device) (stored auth.Device, created bool, err error) {
	stored, err = result(ctx, s.db, func(ctx context.Context) (auth.Device, error) {
		found, err := s.Find(ctx, d.UserID, d.Identity)
		if created = fault.Is(err, fault.NotFound); !created {
			return found, err
		}
		return detached(d), s.insert(ctx, d)
	})
	return stored, created && err == nil, err
}

// Find implements [authstore.Devices].
func (s *Devices) Find(ctx context.Context, user auth.UserID, identity auth.DeviceIdentity) (auth.Device, error) {
	return s.one(ctx, func(d auth.Device) bool {
		return d.UserID == user && d.Identity == identity && !d.Revoked
	}, newestDevice)
}

// List implements [authstore.Devices].
func (s *Devices) List(
	ctx context.Context, user auth.UserID, page auth.PageRequest,
) (list []auth.Device, total int, err error) {
	list, err = s.list(ctx, func(d auth.Device) bool { return d.UserID == user }, newestDevice)
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
		n, err := s.removeAll(ctx, func(d auth.Device) bool {
			return (d.Revoked || !d.Confirmed) && d.LastSeen.Before(before) && !used[d.ID]
		})
		if err != nil {
			return 0, err
		}
		_, err = s.db.deviceTokens.removeAll(ctx, func(t auth.DeviceToken) bool {
			return !s.has(t.DeviceID)
		})
		return n, err
	})
}

// DeviceTokens implements [authstore.DeviceTokens].
type DeviceTokens struct {
	*table[auth.TokenHash, auth.DeviceToken]
}

// NewDeviceTokens returns the device tokens of a database.
func NewDeviceTokens(db *Database) *DeviceTokens { return &DeviceTokens{db.deviceTokens} }

// Add implements [authstore.DeviceTokens].
func (s *DeviceTokens) Add(ctx context.Context, token auth.DeviceToken, keep int) error {
	return s.db.run(ctx, func(ctx context.Context) error {
		if !s.db.devices.has(token.DeviceID) {
			return s.db.devices.errNotFound()
		}
		if err := s.insert(ctx, token); err != nil {
			return err
		}
		tokens, err := s.list(ctx, func(t auth.DeviceToken) bool {
			return t.DeviceID == token.DeviceID
		}, newestToken)
		for _, old := range tokens[len(first(tokens, keep)):] {
			err = cmp.Or(err, s.remove(ctx, old.Hash))
		}
		return err
	})
}

func newestToken(a, b auth.DeviceToken) int {
	return cmp.Or(b.IssuedAt.Compare(a.IssuedAt), slices.Compare(b.Hash[:], a.Hash[:]))
}

// Remove implements [authstore.DeviceTokens].
func (s *DeviceTokens) Remove(ctx context.Context, device auth.DeviceID) error {
	_, err := s.removeAll(ctx, func(t auth.DeviceToken) bool { return t.DeviceID == device })
	return err
}
