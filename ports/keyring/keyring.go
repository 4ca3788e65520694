// Package keyring is the port to what all instances of a deployment share for
// signing: the public halves of token keys, and the deployment's root secret.
package keyring

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
	SeenAt time.Time // when an instance last said that it may sign with it
}

// Ring keeps shared keys in the record store. It is safe for concurrent use.
type Ring interface {
	// Announce stores a public key, or renews its SeenAt. A key id that is
	// stored with another key is fault.Conflict.
	Announce(ctx context.Context, k PublicKey) error
	// PublicKeys returns the keys seen at or after the time, ordered by id.
	PublicKeys(ctx context.Context, since time.Time) ([]PublicKey, error)
	// Withdraw forgets keys, so that no instance takes them from here any more.
	// One that is not there is no error; one that is announced again is there
	// again.
	Withdraw(ctx context.Context, ids ...KeyID) error
	// RootSecret returns the deployment's root secret. If there is none yet,
	// candidate (32 bytes) becomes it; of parallel callers all get the same.
	RootSecret(ctx context.Context, candidate []byte) ([]byte, error)
}
