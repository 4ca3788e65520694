package fakedb

import (
	"cmp"
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/ports/authstore"
)

// Keyring implements [authstore.KeyRing].
type Keyring struct{ db *Database }

// NewKeyring returns the shared keys of a database.
func NewKeyring(db *Database) *Keyring { return &Keyring{db: db} }

// Announce stores a public key, or updates the time at which it was last announced.
func (r *Keyring) Announce(ctx context.Context, k authstore.PublicKey) error {
	return r.db.writeTables(ctx, func(t *tables) error {
		known, ok := t.auth.signingKeys[k.ID]
		switch {
		case ok && !known.Key.Equal(k.Key):
			return errConflict("the key id belongs to another key")
		case !ok || known.SeenAt.Before(k.SeenAt):
			t.auth.signingKeys[k.ID] = copyKey(k)
		}
		return nil
	})
}

// PublicKeys returns the keys that were announced at or after a time.
func (r *Keyring) PublicKeys(ctx context.Context, since time.Time) (keys []authstore.PublicKey, err error) {
	err = r.db.readTables(ctx, func(t *tables) error {
		keys = selectRows(t.auth.signingKeys,
			func(k authstore.PublicKey) bool { return !k.SeenAt.Before(truncateToMicroseconds(since)) },
			func(a, b authstore.PublicKey) int { return cmp.Compare(a.ID, b.ID) }, len(t.auth.signingKeys))
		for i := range keys {
			keys[i] = copyKey(keys[i])
		}
		return nil
	})
	return keys, err
}

// Withdraw deletes keys.
func (r *Keyring) Withdraw(ctx context.Context, ids ...authstore.KeyID) error {
	return r.db.writeTables(ctx, func(t *tables) error {
		for _, id := range ids {
			delete(t.auth.signingKeys, id)
		}
		return nil
	})
}

// RootSecret returns the root secret. If no root secret is stored, it first stores candidate.
func (r *Keyring) RootSecret(ctx context.Context, candidate []byte) (secret []byte, err error) {
	err = r.db.writeTables(ctx, func(t *tables) error {
		if len(t.auth.rootSecret) == 0 {
			t.auth.rootSecret = copyBytes(candidate)
		}
		secret = copyBytes(t.auth.rootSecret)
		return nil
	})
	return secret, err
}

func copyKey(k authstore.PublicKey) authstore.PublicKey {
	k.Key, k.SeenAt = copyBytes(k.Key), truncateToMicroseconds(k.SeenAt)
	return k
}
