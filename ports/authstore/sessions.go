package authstore

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// Sessions stores sessions. Whether a session is still valid is decided in core/auth.
type Sessions interface {
	// Create stores a new session.
	Create(ctx context.Context, s auth.Session) error
	// Get returns a session, ended or not, or fault.NotFound.
	Get(ctx context.Context, id auth.SessionID) (auth.Session, error)
	// Update changes a session, or returns fault.NotFound.
	Update(ctx context.Context, id auth.SessionID, change func(*auth.Session) error) error
	// End ends the active sessions that the filter selects and returns their ids.
	End(ctx context.Context, which SessionFilter, at time.Time, reason auth.EndReason) ([]auth.SessionID, error)
	// Active returns one page of the user's sessions that are active at the given time, and the
	// total number of these sessions. The order is newest first; sessions of the same time are
	// ordered by id, greatest first. With a limit below 1 the page is empty.
	Active(
		ctx context.Context, user auth.UserID, at time.Time, page auth.PageRequest,
	) (sessions []auth.Session, total int, err error)
	// CountSince returns how many sessions of the user were created after t, ended ones included.
	CountSince(ctx context.Context, user auth.UserID, t time.Time) (int, error)
}

// SessionFilter selects sessions of a user. Zero fields other than UserID do not restrict the
// selection.
type SessionFilter struct {
	UserID   auth.UserID // required
	DeviceID auth.DeviceID
	Except   auth.SessionID // a session that is not selected
}

// SessionLevels lowers the trust level of sessions.
type SessionLevels interface {
	// Lower sets the trust level of the active sessions that the filter selects and whose level is
	// above the given one. It returns the ids of the sessions that it changed.
	Lower(ctx context.Context, which SessionFilter, to auth.TrustLevel, at time.Time) ([]auth.SessionID, error)
}

// SessionHistory returns the sessions from which the risk score learns a person's habits.
type SessionHistory interface {
	// Trusted returns at most limit sessions of the user whose level is, or was when they ended,
	// LIMITED_TRUST or higher, newest first (contract A-34).
	Trusted(ctx context.Context, user auth.UserID, limit int) ([]auth.Session, error)
}

// SessionRetention deletes sessions that are no longer needed.
type SessionRetention interface {
	// DeleteExpired deletes the sessions, ended or not, whose ExpiresAt is before the given time,
	// with their refresh tokens and challenges. It returns how many sessions it deleted.
	DeleteExpired(ctx context.Context, before time.Time) (int, error)
}

// RefreshTokens stores the hashes of refresh tokens, spent ones included.
type RefreshTokens interface {
	// Add stores a new, unspent token.
	Add(ctx context.Context, t auth.RefreshToken) error
	// Find returns the token with the hash, spent or not, or fault.NotFound.
	Find(ctx context.Context, hash auth.TokenHash) (auth.RefreshToken, error)
	// Spend marks an unspent token as spent at the given time. Of concurrent calls exactly one
	// succeeds; the others, and all later calls, return fault.Conflict. It returns fault.NotFound
	// for an unknown hash.
	Spend(ctx context.Context, hash auth.TokenHash, at time.Time) error
	// DeleteExpired deletes the tokens of sessions that have ended or expired by the given time,
	// and what is deferred for these sessions (HistoryDeferrals). It returns how many tokens it
	// deleted.
	DeleteExpired(ctx context.Context, before time.Time) (int, error)
}

// SessionCookies stores the hashes of session cookies: at most one for each session. A cookie is
// deleted together with its session.
type SessionCookies interface {
	// Add stores the cookie of a session. It returns fault.Conflict when the session has one.
	Add(ctx context.Context, c auth.SessionCookie) error
	// Find returns the cookie with the hash, or fault.NotFound.
	Find(ctx context.Context, hash auth.TokenHash) (auth.SessionCookie, error)
	// Replace stores a cookie in place of the one with the hash, of the same session. Of concurrent
	// calls with one hash exactly one succeeds; the others, and all later calls, return
	// fault.NotFound.
	Replace(ctx context.Context, hash auth.TokenHash, by auth.SessionCookie) error
}

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

// Challenges stores step-up challenges, with hashes of their codes.
type Challenges interface {
	// Create stores a new challenge.
	Create(ctx context.Context, c auth.Challenge) error
	// Get returns a challenge in any state, or fault.NotFound.
	Get(ctx context.Context, id auth.ChallengeID) (auth.Challenge, error)
	// Update changes a challenge, or returns fault.NotFound.
	Update(ctx context.Context, id auth.ChallengeID, change func(*auth.Challenge) error) error
	// DeleteExpired deletes the challenges that expired before the given time and returns how many
	// it deleted.
	DeleteExpired(ctx context.Context, before time.Time) (int, error)
}

// PendingLogins stores logins whose password was right and whose second factor is still missing: at
// most one for each user and device identity.
type PendingLogins interface {
	// Put stores a pending login and replaces the one of the same user and device identity. It also
	// deletes the user's pending logins that had expired when p was created, so that their number
	// is bounded.
	Put(ctx context.Context, p auth.PendingLogin) error
	// Find returns a pending login, expired or not, or fault.NotFound.
	Find(ctx context.Context, user auth.UserID, identity auth.DeviceIdentity) (auth.PendingLogin, error)
	// Take deletes a pending login. Of parallel calls, on all instances, exactly one succeeds; the
	// others and later ones return fault.NotFound.
	Take(ctx context.Context, user auth.UserID, identity auth.DeviceIdentity) error
	// RemoveAll deletes all pending logins of a user.
	RemoveAll(ctx context.Context, user auth.UserID) error
	// DeleteExpired deletes the pending logins that expired before the given time and returns how
	// many it deleted.
	DeleteExpired(ctx context.Context, before time.Time) (int, error)
}

// Lockouts stores the failed logins of each subject: an account and a device, or an account and an
// address range.
type Lockouts interface {
	// Update changes the lockout of a subject. A subject without a record has the zero value.
	Update(ctx context.Context, key auth.LockoutKey, change func(*auth.Lockout) error) error
	// Get returns the lockout of a subject, or the zero value. It includes every Update, on any
	// instance, that returned before the call.
	Get(ctx context.Context, key auth.LockoutKey) (auth.Lockout, error)
	// DeleteBefore deletes the lockouts whose last failure and whose lock are from before t, and
	// those that were reset. It returns how many it deleted.
	DeleteBefore(ctx context.Context, t time.Time) (int, error)
}

// KeyID is the kid of a signing key.
type KeyID string

// PublicKey is the public half of a key that signs access tokens.
type PublicKey struct {
	ID     KeyID
	Key    crypto.PublicKey // of one of the algorithms
	SeenAt time.Time        // when an instance last announced that it may sign with the key
}

// The algorithms of signatures (RFC 7518, RFC 8037). Those of sessions are by EdDSA.
const (
	EdDSA = "EdDSA" // Ed25519
	ES256 = "ES256" // P-256
	RS256 = "RS256" // RSA, at least 2,048 bits
)

const minRSA = 2048 // bits

// Algorithm returns the one algorithm that a public key is for; empty for a key of another kind.
func Algorithm(key crypto.PublicKey) string {
	switch k := key.(type) {
	case ed25519.PublicKey:
		if len(k) == ed25519.PublicKeySize {
			return EdDSA
		}
	case *ecdsa.PublicKey:
		if k.Curve == elliptic.P256() {
			return ES256
		}
	case *rsa.PublicKey:
		if k.N.BitLen() >= minRSA {
			return RS256
		}
	}
	return ""
}

// Is reports whether the key is the same as another.
func (k PublicKey) Is(other crypto.PublicKey) bool {
	same, ok := k.Key.(interface{ Equal(crypto.PublicKey) bool }) // those of the standard library
	return ok && same.Equal(other)
}

// KeyRing stores what all instances of a deployment share for signing: the public keys of access
// tokens, and the root secret. It joins no transaction.
type KeyRing interface {
	// Announce stores a public key, or renews the SeenAt of a stored one. It returns fault.Conflict
	// when another key of its kind is stored under the id, and fault.Invalid for one of no algorithm.
	Announce(ctx context.Context, k PublicKey) error
	// PublicKeys returns the keys that were seen at or after since, ordered by id.
	PublicKeys(ctx context.Context, since time.Time) ([]PublicKey, error)
	// Withdraw deletes keys. Unknown ids are ignored. A key that is announced again is stored
	// again.
	Withdraw(ctx context.Context, ids ...KeyID) error
	// RootSecret returns the root secret of the deployment. Otherwise, it stores candidate
	// (32 bytes) first; parallel callers all get the same secret.
	RootSecret(ctx context.Context, candidate []byte) ([]byte, error)
}

// PublishedKeys returns the keys with which access tokens can be verified.
type PublishedKeys interface {
	// PublicKeys returns the public keys of all instances, ordered by id, without duplicates.
	PublicKeys(ctx context.Context) ([]PublicKey, error)
}
