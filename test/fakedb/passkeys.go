package fakedb

import (
	"cmp"
	"context"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// Passkeys implements [authstore.Passkeys].
type Passkeys struct {
	*table[auth.PasskeyID, auth.Passkey]
}

// NewPasskeys returns the passkeys of a database.
func NewPasskeys(db *Database) *Passkeys { return &Passkeys{db.passkeys} }

func byCreation(a, b auth.Passkey) int {
	return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
}

// Find implements [authstore.Passkeys].
func (s *Passkeys) Find(ctx context.Context, id auth.CredentialID) (auth.Passkey, error) {
	return s.one(ctx, func(p auth.Passkey) bool { return p.Credential.ID == id }, byCreation)
}

// Of implements [authstore.Passkeys].
func (s *Passkeys) Of(ctx context.Context, user auth.UserID) ([]auth.Passkey, error) {
	return s.list(ctx, func(p auth.Passkey) bool { return p.UserID == user }, byCreation)
}

// Remove implements [authstore.Passkeys].
func (s *Passkeys) Remove(ctx context.Context, user auth.UserID, id auth.PasskeyID) error {
	return s.db.run(ctx, func(ctx context.Context) error {
		if s.rows[id].UserID != user {
			return s.errNotFound()
		}
		return s.remove(ctx, id)
	})
}
