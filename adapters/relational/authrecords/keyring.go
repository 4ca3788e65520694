package authrecords

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"time"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
)

var _ authstore.KeyRing = (*Keyring)(nil)

// Keyring keeps what all instances share for signing. It implements [authstore.KeyRing].
type Keyring struct{ db *database.DB }

// NewKeyring returns the shared keys of a database.
func NewKeyring(db *database.DB) *Keyring { return &Keyring{db: db} }

type signingKeyRow struct {
	bun.BaseModel `bun:"table:signing_keys,alias:k"`

	ID        authstore.KeyID  `bun:"id,pk"`
	PublicKey []byte           `bun:"public_key"`
	SeenAt    database.Instant `bun:"seen_at"`
}

type rootSecretRow struct {
	bun.BaseModel `bun:"table:root_secret"`

	ID     int    `bun:"id,pk"`
	Secret []byte `bun:"secret"`
}

// theRoot is the id of the only row of root_secret.
const theRoot = 1

// Announce stores a public key or renews when it was seen, which never goes
// back.
func (r *Keyring) Announce(ctx context.Context, k authstore.PublicKey) error {
	return r.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		row := &signingKeyRow{ID: k.ID, PublicKey: k.Key, SeenAt: database.NewInstant(k.SeenAt)}
		n, err := r.db.AffectedRows(tx.NewInsert().Model(row).On("CONFLICT DO NOTHING").Exec(ctx))
		if err != nil || n == 1 {
			return err
		}
		known := new(signingKeyRow)
		if err := r.db.LockForChange(tx.NewSelect().Model(known).Where("id = ?", k.ID)).Scan(ctx); err != nil {
			return r.db.ClassifyError(err)
		}
		switch {
		case !bytes.Equal(known.PublicKey, k.Key):
			return fault.New(fault.Conflict, "", "the key id belongs to another key")
		case !known.SeenAt.Before(k.SeenAt):
			return nil
		}
		_, err = tx.NewUpdate().Model(row).Column("seen_at").WherePK().Exec(ctx)
		return r.db.ClassifyError(err)
	})
}

// PublicKeys returns the keys seen at or after a time.
func (r *Keyring) PublicKeys(ctx context.Context, since time.Time) ([]authstore.PublicKey, error) {
	return database.Read(ctx, r.db, func(ctx context.Context, db bun.IDB) ([]authstore.PublicKey, error) {
		var rows []signingKeyRow
		err := db.NewSelect().Model(&rows).Where("seen_at >= ?", database.NewInstant(since)).Order("id").Scan(ctx)
		if err != nil {
			return nil, r.db.ClassifyError(err)
		}
		keys := make([]authstore.PublicKey, len(rows))
		for i, row := range rows {
			keys[i] = authstore.PublicKey{ID: row.ID, Key: ed25519.PublicKey(row.PublicKey), SeenAt: row.SeenAt.Time}
		}
		return keys, nil
	})
}

// Withdraw forgets keys.
func (r *Keyring) Withdraw(ctx context.Context, ids ...authstore.KeyID) error {
	if len(ids) == 0 {
		return nil
	}
	return r.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		_, err := tx.NewDelete().Model((*signingKeyRow)(nil)).Where("id IN (?)", bun.List(ids)).Exec(ctx)
		return r.db.ClassifyError(err)
	})
}

// RootSecret returns the root secret, which is candidate if there is none yet.
//
// It lies in the database as it is: whoever reads a backup can make what it
// seals. Deployments that want the secret outside the database set SECRET_KEY,
// and this is then never called.
func (r *Keyring) RootSecret(ctx context.Context, candidate []byte) ([]byte, error) {
	row := new(rootSecretRow)
	_, err := database.Read(ctx, r.db, func(ctx context.Context, db bun.IDB) (struct{}, error) {
		return struct{}{}, r.db.ClassifyError(db.NewSelect().Model(row).Where("id = ?", theRoot).Scan(ctx))
	})
	if !fault.Is(err, fault.NotFound) {
		return row.Secret, err
	}
	err = r.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		_, err := tx.NewInsert().Model(&rootSecretRow{ID: theRoot, Secret: candidate}).On("CONFLICT DO NOTHING").Exec(ctx)
		if err != nil {
			return r.db.ClassifyError(err)
		}
		return r.db.ClassifyError(tx.NewSelect().Model(row).Where("id = ?", theRoot).Scan(ctx))
	})
	if err != nil {
		return nil, err
	}
	return row.Secret, nil
}
