package records

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

// Announce stores a public key or renews when it was seen.
func (r *Keyring) Announce(ctx context.Context, k authstore.PublicKey) error {
	return r.db.write(ctx, func(t *tables) error {
		known, ok := t.auth.signingKeys[k.ID]
		switch {
		case ok && !known.Key.Equal(k.Key):
			return conflict("the key id belongs to another key")
		case !ok || known.SeenAt.Before(k.SeenAt):
			t.auth.signingKeys[k.ID] = keptKey(k)
		}
		return nil
	})
}

// PublicKeys returns the keys seen at or after a time.
func (r *Keyring) PublicKeys(ctx context.Context, since time.Time) (keys []authstore.PublicKey, err error) {
	err = r.db.read(ctx, func(t *tables) error {
		keys = selected(t.auth.signingKeys,
			func(k authstore.PublicKey) bool { return !k.SeenAt.Before(micros(since)) },
			func(a, b authstore.PublicKey) int { return cmp.Compare(a.ID, b.ID) }, len(t.auth.signingKeys))
		for i := range keys {
			keys[i] = keptKey(keys[i])
		}
		return nil
	})
	return keys, err
}

// Withdraw forgets keys.
func (r *Keyring) Withdraw(ctx context.Context, ids ...authstore.KeyID) error {
	return r.db.write(ctx, func(t *tables) error {
		for _, id := range ids {
			delete(t.auth.signingKeys, id)
		}
		return nil
	})
}

// RootSecret returns the root secret, which is candidate if there is none yet.
func (r *Keyring) RootSecret(ctx context.Context, candidate []byte) (secret []byte, err error) {
	err = r.db.write(ctx, func(t *tables) error {
		if len(t.auth.rootSecret) == 0 {
			t.auth.rootSecret = kept(candidate)
		}
		secret = kept(t.auth.rootSecret)
		return nil
	})
	return secret, err
}

func keptKey(k authstore.PublicKey) authstore.PublicKey {
	k.Key, k.SeenAt = kept(k.Key), micros(k.SeenAt)
	return k
}
