package authstore

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// Devices stores devices. The store guarantees that a user has at most one device of an identity
// that is not revoked.
type Devices interface {
	// Ensure returns the user's device with the identity d.Identity that is not revoked. If there
	// is none, it stores and returns d, and created is true. Of parallel calls exactly one creates
	// the device.
	Ensure(ctx context.Context, d auth.Device) (stored auth.Device, created bool, err error)
	// Find returns the user's device with the identity that is not revoked, or fault.NotFound.
	Find(ctx context.Context, user auth.UserID, identity auth.DeviceIdentity) (auth.Device, error)
	// Get returns a device, revoked or not, or fault.NotFound.
	Get(ctx context.Context, id auth.DeviceID) (auth.Device, error)
	// Update changes a device, or returns fault.NotFound.
	Update(ctx context.Context, id auth.DeviceID, change func(*auth.Device) error) error
	// List returns one page of the user's devices, revoked ones included, ordered by the time they
	// were last seen and then by id, both descending, and the number of all of them. With a limit
	// below 1 the page is empty.
	List(ctx context.Context, user auth.UserID, page auth.PageRequest) (devices []auth.Device, total int, err error)
	// DeleteUnused deletes the devices that were last seen before the given time, have no session,
	// and are revoked or were never confirmed, with their tokens. It returns how many it deleted.
	DeleteUnused(ctx context.Context, before time.Time) (int, error)
}

// DeviceTokens stores the hashes of device tokens.
type DeviceTokens interface {
	// Add stores a token of a device and deletes the device's older tokens, except for the newest
	// keep.
	Add(ctx context.Context, t auth.DeviceToken, keep int) error
	// Find returns the token with the hash, or fault.NotFound.
	Find(ctx context.Context, hash auth.TokenHash) (auth.DeviceToken, error)
	// Remove deletes all tokens of a device.
	Remove(ctx context.Context, device auth.DeviceID) error
}
