package authstore

import (
	"context"
	"crypto/ed25519"
	"time"
)

// KeyID is the kid of a signing key.
type KeyID string

// PublicKey is the public half of a key that signs access tokens.
type PublicKey struct {
	ID     KeyID
	Key    ed25519.PublicKey
	SeenAt time.Time // when an instance last announced that it may sign with the key
}

// KeyRing stores what all instances of a deployment share for signing: the public keys of access
// tokens, and the root secret. It joins no transaction.
type KeyRing interface {
	// Announce stores a public key, or renews the SeenAt of a stored one. It returns fault.Conflict
	// when another key is stored under the id.
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
