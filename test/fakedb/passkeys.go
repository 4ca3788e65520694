package fakedb

import (
	"cmp"
	"context"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// Passkeys implements [authstore.Passkeys].
type Passkeys struct{ db *Database }

// NewPasskeys returns the passkeys of a database.
func NewPasskeys(db *Database) *Passkeys { return &Passkeys{db} }

// Add implements [authstore.Passkeys].
func (s *Passkeys) Add(ctx context.Context, p auth.Passkey) error {
	return s.db.run(ctx, func(ctx context.Context) error {
		return cmp.Or(s.db.accounts.refer(p.UserID), s.db.passkeys.insert(ctx, p))
	})
}

func byCreation(a, b auth.Passkey) int {
	return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
}

// Find implements [authstore.Passkeys].
func (s *Passkeys) Find(ctx context.Context, id auth.CredentialID) (auth.Passkey, error) {
	found, err := s.db.passkeys.list(ctx, func(p auth.Passkey) bool { return p.Credential.ID == id }, byCreation)
	if err != nil || len(found) == 0 {
		return auth.Passkey{}, cmp.Or(err, s.db.passkeys.errNotFound())
	}
	return found[0], nil
}

// Of implements [authstore.Passkeys].
func (s *Passkeys) Of(ctx context.Context, user auth.UserID) ([]auth.Passkey, error) {
	return s.db.passkeys.list(ctx, func(p auth.Passkey) bool { return p.UserID == user }, byCreation)
}

// Update implements [authstore.Passkeys].
func (s *Passkeys) Update(ctx context.Context, id auth.PasskeyID, change func(*auth.Passkey) error) error {
	return s.db.passkeys.update(ctx, id, change)
}

// Remove implements [authstore.Passkeys].
func (s *Passkeys) Remove(ctx context.Context, user auth.UserID, id auth.PasskeyID) error {
	return s.db.run(ctx, func(ctx context.Context) error {
		if s.db.passkeys.rows[id].UserID != user {
			return s.db.passkeys.errNotFound()
		}
		return s.db.passkeys.remove(ctx, id)
	})
}
