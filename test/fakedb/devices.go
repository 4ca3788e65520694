package fakedb

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// Devices implements [authstore.Devices].
type Devices struct{ db *Database }

// NewDevices returns the devices of a database.
func NewDevices(db *Database) *Devices { return &Devices{db: db} }

// Ensure returns the device of a user with an identity, and creates it if needed.
func (s *Devices) Ensure(ctx context.Context, d auth.Device) (dev auth.Device, made bool, err error) {
	err = s.db.writeTables(ctx, func(t *tables) error {
		var known bool
		if dev, known = t.auth.findCurrentDevice(d.UserID, d.Identity); known {
			return nil
		}
		if _, ok := t.auth.accounts[d.UserID]; !ok {
			return errMissing("account")
		}
		if _, taken := t.auth.devices[d.ID]; taken {
			return errConflict("the device id is already in use")
		}
		dev, made = copyDevice(d), true
		t.auth.devices[d.ID] = dev
		return nil
	})
	if err != nil {
		return auth.Device{}, false, err
	}
	return dev, made, nil
}

// Find returns the device of a user with an identity, unless it is revoked.
func (s *Devices) Find(ctx context.Context, user auth.UserID, identity auth.DeviceIdentity) (d auth.Device, err error) {
	err = s.db.readTables(ctx, func(t *tables) error {
		var ok bool
		if d, ok = t.auth.findCurrentDevice(user, identity); !ok {
			return errNotFound("device")
		}
		return nil
	})
	return d, err
}

// Get returns a device, revoked or not.
func (s *Devices) Get(ctx context.Context, id auth.DeviceID) (d auth.Device, err error) {
	err = s.db.readTables(ctx, func(t *tables) error {
		var ok bool
		if d, ok = t.auth.devices[id]; !ok {
			return errNotFound("device")
		}
		return nil
	})
	return d, err
}

// Update implements [authstore.Devices].
func (s *Devices) Update(ctx context.Context, id auth.DeviceID, change func(*auth.Device) error) error {
	return s.db.writeTables(ctx, func(t *tables) error {
		d, ok := t.auth.devices[id]
		if !ok {
			return errNotFound("device")
		}
		if err := change(&d); err != nil {
			return err
		}
		d.ID = id
		if other, ok := t.auth.findCurrentDevice(d.UserID, d.Identity); ok && !d.Revoked && other.ID != id {
			return errConflict("the user already has a device with this identity")
		}
		t.auth.devices[id] = copyDevice(d)
		return nil
	})
}

// List returns a page of the devices of a user, last seen first.
func (s *Devices) List(ctx context.Context, user auth.UserID, page auth.PageRequest) (list []auth.Device, total int, err error) {
	err = s.db.readTables(ctx, func(t *tables) error {
		list, total = cutPage(selectRows(t.auth.devices,
			func(d auth.Device) bool { return d.UserID == user },
			func(a, b auth.Device) int { return cmp.Or(b.LastSeen.Compare(a.LastSeen), cmp.Compare(b.ID, a.ID)) },
			len(t.auth.devices)), page)
		return nil
	})
	return list, total, err
}

// findCurrentDevice returns the device of a user with an identity, unless it is revoked.
func (t authTables) findCurrentDevice(user auth.UserID, identity auth.DeviceIdentity) (auth.Device, bool) {
	for _, d := range t.devices {
		if d.UserID == user && d.Identity == identity && !d.Revoked {
			return d, true
		}
	}
	return auth.Device{}, false
}

func copyDevice(d auth.Device) auth.Device {
	d.FirstSeen, d.LastSeen = truncateToMicroseconds(d.FirstSeen), truncateToMicroseconds(d.LastSeen)
	return d
}

// DeleteUnused deletes unused devices and their tokens.
func (s *Devices) DeleteUnused(ctx context.Context, before time.Time) (n int, err error) {
	err = s.db.writeTables(ctx, func(t *tables) error {
		used := map[auth.DeviceID]bool{}
		for _, session := range t.auth.sessions {
			used[session.DeviceID] = true
		}
		n = deleteRows(t.auth.devices, func(d auth.Device) bool {
			return (d.Revoked || !d.Confirmed) && d.LastSeen.Before(truncateToMicroseconds(before)) && !used[d.ID]
		})
		deleteRows(t.auth.deviceTokens, func(o auth.DeviceToken) bool { _, kept := t.auth.devices[o.DeviceID]; return !kept })
		return nil
	})
	return n, err
}

// DeviceTokens implements [authstore.DeviceTokens].
type DeviceTokens struct{ db *Database }

// NewDeviceTokens returns the device tokens of a database.
func NewDeviceTokens(db *Database) *DeviceTokens { return &DeviceTokens{db: db} }

// Add stores a token and deletes all but the newest keep tokens of the device.
func (s *DeviceTokens) Add(ctx context.Context, token auth.DeviceToken, keep int) error {
	return s.db.writeTables(ctx, func(t *tables) error {
		if _, ok := t.auth.devices[token.DeviceID]; !ok {
			return errNotFound("device")
		}
		if _, taken := t.auth.deviceTokens[token.Hash]; taken {
			return errConflict("the device token is already in use")
		}
		token.IssuedAt = truncateToMicroseconds(token.IssuedAt)
		t.auth.deviceTokens[token.Hash] = token
		of := selectRows(t.auth.deviceTokens,
			func(o auth.DeviceToken) bool { return o.DeviceID == token.DeviceID }, compareTokenAge, len(t.auth.deviceTokens))
		for _, old := range of[min(len(of), max(keep, 0)):] {
			delete(t.auth.deviceTokens, old.Hash)
		}
		return nil
	})
}

// Find returns the token with a hash.
func (s *DeviceTokens) Find(ctx context.Context, hash auth.TokenHash) (token auth.DeviceToken, err error) {
	err = s.db.readTables(ctx, func(t *tables) error {
		var ok bool
		if token, ok = t.auth.deviceTokens[hash]; !ok {
			return errNotFound("device token")
		}
		return nil
	})
	return token, err
}

// Remove deletes all tokens of a device.
func (s *DeviceTokens) Remove(ctx context.Context, device auth.DeviceID) error {
	return s.db.writeTables(ctx, func(t *tables) error {
		deleteRows(t.auth.deviceTokens, func(o auth.DeviceToken) bool { return o.DeviceID == device })
		return nil
	})
}

// compareTokenAge orders tokens from new to old, tokens of the same age by hash.
func compareTokenAge(a, b auth.DeviceToken) int {
	return cmp.Or(b.IssuedAt.Compare(a.IssuedAt), slices.Compare(b.Hash[:], a.Hash[:]))
}
