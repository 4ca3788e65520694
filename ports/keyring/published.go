package keyring

import "context"

// Published tells with which keys the deployment's tokens can be verified. It is safe for concurrent use.
type Published interface {
	// PublicKeys returns the public keys of all instances, ordered by id, without duplicates; fault.Unavailable when the record
	// store is away.
	PublicKeys(ctx context.Context) ([]PublicKey, error)
}
