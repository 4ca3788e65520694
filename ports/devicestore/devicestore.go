// Package devicestore is the port to the records of devices and the hashes of
// their tokens. Which device is trusted is for the core to say.
package devicestore

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// Store keeps devices. All methods are safe for concurrent use, join a
// transaction that the context carries, and return fault.Unavailable when the
// database is away. A user has at most one device that is not revoked of one
// identity; the database sees to it.
type Store interface {
	// Ensure returns the user's device of d.Identity that is not revoked. If
	// there is none, d is stored and returned, and made is true; of parallel
	// calls exactly one makes it.
	Ensure(ctx context.Context, d auth.Device) (dev auth.Device, made bool, err error)
	// Find returns the user's device of an identity that is not revoked, or
	// fault.NotFound.
	Find(ctx context.Context, user auth.UserID, identity auth.DeviceIdentity) (auth.Device, error)
	// Get returns a device, revoked or not, or fault.NotFound.
	Get(ctx context.Context, id auth.DeviceID) (auth.Device, error)
	// Update reads the device, lets change alter it and stores the result; no
	// other Update of the same device comes between. When change fails,
	// nothing is stored and its error is returned. fault.NotFound when there
	// is none.
	Update(ctx context.Context, id auth.DeviceID, change func(*auth.Device) error) error
	// List returns one page of the user's devices, revoked ones too, last seen
	// first (ties by id, greatest first), and how many there are in all. A
	// limit below 1 returns none.
	List(ctx context.Context, user auth.UserID, page auth.PageRequest) (devices []auth.Device, total int, err error)
	// DeleteUnused removes the devices that are revoked or were never
	// confirmed, were last seen before the time and have no session, with their
	// tokens; it returns how many.
	DeleteUnused(ctx context.Context, before time.Time) (int, error)
}

// Tokens keeps the hashes of device tokens. Same promises as Store.
type Tokens interface {
	// Add stores a token of a device and removes all but its newest keep.
	Add(ctx context.Context, t auth.DeviceToken, keep int) error
	// Find returns the token of a hash, or fault.NotFound.
	Find(ctx context.Context, hash auth.TokenHash) (auth.DeviceToken, error)
	// Remove deletes all tokens of a device.
	Remove(ctx context.Context, device auth.DeviceID) error
}
