package fakedb

import (
	"cmp"
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
)

// Keyring implements [authstore.KeyRing].
type Keyring struct{ db *Database }

// NewKeyring returns the shared keys of a database.
func NewKeyring(db *Database) *Keyring { return &Keyring{db} }

// Announce implements [authstore.KeyRing].
func (r *Keyring) Announce(ctx context.Context, k authstore.PublicKey) error {
	return r.db.run(ctx, func(ctx context.Context) error {
		known, ok := r.db.signingKeys.rows[k.ID]
		switch {
		case ok && !known.Key.Equal(k.Key):
			return fault.New(fault.Conflict, "the key id belongs to another key")
		case ok && !known.SeenAt.Before(k.SeenAt):
			return nil
		}
		return r.db.signingKeys.put(ctx, k)
	})
}

// PublicKeys implements [authstore.KeyRing].
func (r *Keyring) PublicKeys(ctx context.Context, since time.Time) ([]authstore.PublicKey, error) {
	since = storedTime(since)
	return r.db.signingKeys.list(ctx, func(k authstore.PublicKey) bool { return !k.SeenAt.Before(since) },
		func(a, b authstore.PublicKey) int { return cmp.Compare(a.ID, b.ID) })
}

// Withdraw implements [authstore.KeyRing].
func (r *Keyring) Withdraw(ctx context.Context, ids ...authstore.KeyID) error {
	withdrawn := map[authstore.KeyID]bool{}
	for _, id := range ids {
		withdrawn[id] = true
	}
	_, err := r.db.signingKeys.removeAll(ctx, func(k authstore.PublicKey) bool { return withdrawn[k.ID] })
	return err
}

// RootSecret implements [authstore.KeyRing].
func (r *Keyring) RootSecret(ctx context.Context, candidate []byte) ([]byte, error) {
	return result(ctx, r.db, func(ctx context.Context) ([]byte, error) {
		if len(r.db.rootSecrets.rows[0]) == 0 {
			if err := r.db.rootSecrets.put(ctx, candidate); err != nil {
				return nil, err
			}
		}
		return r.db.rootSecrets.find(ctx, 0)
	})
}
