package authrecords

import (
	"context"
	"strings"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/auth"
)

// passkeyStore stores the passkeys of people. It implements [authstore.Passkeys].
type passkeyStore struct {
	table[auth.Passkey, passkeyRow]
}

type passkeyRow struct {
	bun.BaseModel `bun:"table:passkeys"`

	ID             auth.PasskeyID   `bun:"id,pk"`
	UserID         auth.UserID      `bun:"user_id"`
	CredentialID   []byte           `bun:"credential_id"`
	PublicKey      []byte           `bun:"public_key"`
	SignCount      int64            `bun:"sign_count"`
	Transports     string           `bun:"transports"` // separated by spaces
	AAGUID         []byte           `bun:"aaguid"`
	BackupEligible bool             `bun:"backup_eligible"`
	BackedUp       bool             `bun:"backed_up"`
	Name           string           `bun:"name"`
	CreatedAt      database.Instant `bun:"created_at"`
	LastUsedAt     database.Instant `bun:"last_used_at,nullzero"`
	SuspendedAt    database.Instant `bun:"suspended_at,nullzero"`
}

func newPasskeyRow(p auth.Passkey) *passkeyRow {
	return &passkeyRow{
		ID: p.ID, UserID: p.UserID, CredentialID: []byte(p.Credential.ID), PublicKey: p.PublicKey,
		SignCount: int64(p.SignCount), Transports: strings.Join(p.Transports, " "), AAGUID: p.AAGUID[:],
		BackupEligible: p.BackupEligible, BackedUp: p.BackedUp, Name: p.Name,
		CreatedAt: database.NewInstant(p.CreatedAt), LastUsedAt: database.NewInstant(p.LastUsedAt),
		SuspendedAt: database.NewInstant(p.SuspendedAt),
	}
}

func (r *passkeyRow) toPasskey() auth.Passkey {
	p := auth.Passkey{
		ID: r.ID, UserID: r.UserID, Name: r.Name, CreatedAt: r.CreatedAt.Time, LastUsedAt: r.LastUsedAt.Time,
		SuspendedAt: r.SuspendedAt.Time,
		Credential: auth.Credential{
			ID: auth.CredentialID(r.CredentialID), PublicKey: r.PublicKey,
			SignCount:      uint32(r.SignCount), // #nosec G115 -- is stored from one
			BackupEligible: r.BackupEligible, BackedUp: r.BackedUp,
		},
	}
	if r.Transports != "" {
		p.Transports = strings.Fields(r.Transports)
	}
	copy(p.AAGUID[:], r.AAGUID)
	return p
}

// Add implements authstore.Passkeys.
func (s *passkeyStore) Add(ctx context.Context, p auth.Passkey) error {
	return s.insertNew(ctx, p, "this passkey is registered already")
}

// Find implements authstore.Passkeys.
func (s *passkeyStore) Find(ctx context.Context, id auth.CredentialID) (auth.Passkey, error) {
	return s.find(ctx, "credential_id = ?", []byte(id))
}

// Of implements authstore.Passkeys.
func (s *passkeyStore) Of(ctx context.Context, user auth.UserID) ([]auth.Passkey, error) {
	return s.readList(ctx, func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("user_id = ?", user).Order("created_at", "id")
	})
}

// Update implements authstore.Passkeys.
func (s *passkeyStore) Update(ctx context.Context, id auth.PasskeyID, change func(*auth.Passkey) error) error {
	return s.update(ctx, id, change, "user_id", "credential_id", "public_key", "transports", "aaguid",
		"backup_eligible", "created_at")
}

// Remove implements authstore.Passkeys.
func (s *passkeyStore) Remove(ctx context.Context, user auth.UserID, id auth.PasskeyID) error {
	return changeOne(ctx, s.db, noSuchRecord("passkey"), "DELETE FROM passkeys WHERE user_id = ? AND id = ?",
		string(user), string(id))
}
