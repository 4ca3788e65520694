package records

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// Devices answers ports/authstore.Devices.
type Devices struct{ db *Database }

// NewDevices returns the devices of a database.
func NewDevices(db *Database) *Devices { return &Devices{db: db} }

// Ensure returns the user's device of an identity, making it where needed.
func (s *Devices) Ensure(ctx context.Context, d auth.Device) (dev auth.Device, made bool, err error) {
	err = s.db.write(ctx, func(t *tables) error {
		var known bool
		if dev, known = t.auth.current(d.UserID, d.Identity); known {
			return nil
		}
		if _, ok := t.auth.accounts[d.UserID]; !ok {
			return missing("account")
		}
		if _, taken := t.auth.devices[d.ID]; taken {
			return conflict("the device id is taken")
		}
		dev, made = keptDevice(d), true
		t.auth.devices[d.ID] = dev
		return nil
	})
	if err != nil {
		return auth.Device{}, false, err
	}
	return dev, made, nil
}

// Find returns the user's device of an identity that is not revoked.
func (s *Devices) Find(ctx context.Context, user auth.UserID, identity auth.DeviceIdentity) (d auth.Device, err error) {
	err = s.db.read(ctx, func(t *tables) error {
		var ok bool
		if d, ok = t.auth.current(user, identity); !ok {
			return notFound("device")
		}
		return nil
	})
	return d, err
}

// Get returns a device, revoked or not.
func (s *Devices) Get(ctx context.Context, id auth.DeviceID) (d auth.Device, err error) {
	err = s.db.read(ctx, func(t *tables) error {
		var ok bool
		if d, ok = t.auth.devices[id]; !ok {
			return notFound("device")
		}
		return nil
	})
	return d, err
}

// Update lets change alter a device.
func (s *Devices) Update(ctx context.Context, id auth.DeviceID, change func(*auth.Device) error) error {
	return s.db.write(ctx, func(t *tables) error {
		d, ok := t.auth.devices[id]
		if !ok {
			return notFound("device")
		}
		if err := change(&d); err != nil {
			return err
		}
		d.ID = id
		if other, ok := t.auth.current(d.UserID, d.Identity); ok && !d.Revoked && other.ID != id {
			return conflict("the user has a device of that identity")
		}
		t.auth.devices[id] = keptDevice(d)
		return nil
	})
}

// List returns a page of the user's devices, last seen first.
func (s *Devices) List(ctx context.Context, user auth.UserID, page auth.PageRequest) (list []auth.Device, total int, err error) {
	err = s.db.read(ctx, func(t *tables) error {
		list, total = pageOf(selected(t.auth.devices,
			func(d auth.Device) bool { return d.UserID == user },
			func(a, b auth.Device) int { return cmp.Or(b.LastSeen.Compare(a.LastSeen), cmp.Compare(b.ID, a.ID)) },
			len(t.auth.devices)), page)
		return nil
	})
	return list, total, err
}

// current finds the user's device of an identity that is not revoked.
func (t authTables) current(user auth.UserID, identity auth.DeviceIdentity) (auth.Device, bool) {
	for _, d := range t.devices {
		if d.UserID == user && d.Identity == identity && !d.Revoked {
			return d, true
		}
	}
	return auth.Device{}, false
}

func keptDevice(d auth.Device) auth.Device {
	d.FirstSeen, d.LastSeen = micros(d.FirstSeen), micros(d.LastSeen)
	return d
}

// DeleteUnused removes devices that nobody misses, with their tokens.
func (s *Devices) DeleteUnused(ctx context.Context, before time.Time) (n int, err error) {
	err = s.db.write(ctx, func(t *tables) error {
		used := map[auth.DeviceID]bool{}
		for _, session := range t.auth.sessions {
			used[session.DeviceID] = true
		}
		n = deleted(t.auth.devices, func(d auth.Device) bool {
			return (d.Revoked || !d.Confirmed) && d.LastSeen.Before(micros(before)) && !used[d.ID]
		})
		deleted(t.auth.deviceTokens, func(o auth.DeviceToken) bool { _, kept := t.auth.devices[o.DeviceID]; return !kept })
		return nil
	})
	return n, err
}

// DeviceTokens answers ports/authstore.DeviceTokens.
type DeviceTokens struct{ db *Database }

// NewDeviceTokens returns the device tokens of a database.
func NewDeviceTokens(db *Database) *DeviceTokens { return &DeviceTokens{db: db} }

// Add stores a token and removes all but the device's newest keep.
func (s *DeviceTokens) Add(ctx context.Context, token auth.DeviceToken, keep int) error {
	return s.db.write(ctx, func(t *tables) error {
		if _, ok := t.auth.devices[token.DeviceID]; !ok {
			return notFound("device")
		}
		if _, taken := t.auth.deviceTokens[token.Hash]; taken {
			return conflict("the device token is taken")
		}
		token.IssuedAt = micros(token.IssuedAt)
		t.auth.deviceTokens[token.Hash] = token
		of := selected(t.auth.deviceTokens,
			func(o auth.DeviceToken) bool { return o.DeviceID == token.DeviceID }, newestToken, len(t.auth.deviceTokens))
		for _, old := range of[min(len(of), max(keep, 0)):] {
			delete(t.auth.deviceTokens, old.Hash)
		}
		return nil
	})
}

// Find returns the token of a hash.
func (s *DeviceTokens) Find(ctx context.Context, hash auth.TokenHash) (token auth.DeviceToken, err error) {
	err = s.db.read(ctx, func(t *tables) error {
		var ok bool
		if token, ok = t.auth.deviceTokens[hash]; !ok {
			return notFound("device token")
		}
		return nil
	})
	return token, err
}

// Remove deletes all tokens of a device.
func (s *DeviceTokens) Remove(ctx context.Context, device auth.DeviceID) error {
	return s.db.write(ctx, func(t *tables) error {
		deleted(t.auth.deviceTokens, func(o auth.DeviceToken) bool { return o.DeviceID == device })
		return nil
	})
}

// newestToken orders tokens by age, the newest first; ties by hash.
func newestToken(a, b auth.DeviceToken) int {
	return cmp.Or(b.IssuedAt.Compare(a.IssuedAt), slices.Compare(b.Hash[:], a.Hash[:]))
}
