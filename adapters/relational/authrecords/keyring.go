package authrecords

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"fmt"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/secrets"
)

var _ authstore.KeyRing = (*Keyring)(nil)

// Keyring stores the keys that all instances share. It implements [authstore.KeyRing].
type Keyring struct{ db *database.DB }

// NewKeyring returns the shared keys of a database.
func NewKeyring(db *database.DB) *Keyring { return &Keyring{db: db} }

// signingKeyRow is a key, in one of the tables of keys.
type signingKeyRow struct {
	bun.BaseModel `bun:"table:signing_keys,alias:k"`

	ID        authstore.KeyID  `bun:"id,pk"`
	PublicKey []byte           `bun:"public_key"`
	SeenAt    database.Instant `bun:"seen_at"`
}

// The tables of keys: those of Ed25519 as they are, and those of other algorithms as PKIX (RFC 5280),
// which versions before them do not read.
const (
	plainKeys bun.Ident = "signing_keys"
	otherKeys bun.Ident = "signing_keys_pkix"
)

// rowOf returns the row of a key and its table.
func rowOf(k authstore.PublicKey) (*signingKeyRow, bun.Ident, error) {
	row := &signingKeyRow{ID: k.ID, SeenAt: database.NewInstant(k.SeenAt)}
	switch authstore.Algorithm(k.Key) {
	case "":
		return nil, "", fault.New(fault.Invalid, "the key is of no algorithm")
	case authstore.EdDSA:
		row.PublicKey, _ = k.Key.(ed25519.PublicKey) // its only type
		return row, plainKeys, nil
	}
	var err error
	if row.PublicKey, err = x509.MarshalPKIXPublicKey(k.Key); err != nil {
		return nil, "", fmt.Errorf("encode a public key: %w", err)
	}
	return row, otherKeys, nil
}

type rootSecretRow struct {
	bun.BaseModel `bun:"table:root_secret"`

	ID     int    `bun:"id,pk"`
	Secret []byte `bun:"secret"`
}

// rootSecretID is the id of the only row of root_secret.
const rootSecretID = 1

// Announce implements authstore.KeyRing. The time at which a key was seen never goes back.
func (r *Keyring) Announce(ctx context.Context, k authstore.PublicKey) error {
	row, table, err := rowOf(k)
	if err != nil {
		return err
	}
	return r.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		insert := tx.NewInsert().Model(row).ModelTableExpr("? AS k", table).On("CONFLICT DO NOTHING")
		n, err := r.db.AffectedRows(insert.Exec(ctx))
		if err != nil || n == 1 {
			return err
		}
		known := new(signingKeyRow)
		find := tx.NewSelect().Model(known).ModelTableExpr("? AS k", table).Where("id = ?", k.ID)
		if err := r.db.LockForChange(find).Scan(ctx); err != nil {
			return r.db.ClassifyError(err)
		}
		switch {
		case !bytes.Equal(known.PublicKey, row.PublicKey):
			return fault.New(fault.Conflict, "the key id belongs to another key")
		case !known.SeenAt.Before(k.SeenAt):
			return nil
		}
		_, err = tx.NewUpdate().Model(row).ModelTableExpr("? AS k", table).Column("seen_at").WherePK().Exec(ctx)
		return r.db.ClassifyError(err)
	})
}

// PublicKeys implements authstore.KeyRing.
func (r *Keyring) PublicKeys(ctx context.Context, since time.Time) ([]authstore.PublicKey, error) {
	plain, err := r.readKeys(ctx, plainKeys, since, func(raw []byte) (any, error) { return ed25519.PublicKey(raw), nil })
	if err != nil {
		return nil, err
	}
	others, err := r.readKeys(ctx, otherKeys, since, x509.ParsePKIXPublicKey)
	all := slices.Concat(plain, others)
	slices.SortFunc(all, func(a, b authstore.PublicKey) int { return cmp.Compare(a.ID, b.ID) })
	return all, err
}

func (r *Keyring) readKeys(
	ctx context.Context, table bun.Ident, since time.Time, parse func([]byte) (any, error),
) ([]authstore.PublicKey, error) {
	return database.ReadRows(ctx, r.db, func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.ModelTableExpr("? AS k", table).Where("seen_at >= ?", database.NewInstant(since))
	}, func(row *signingKeyRow) (authstore.PublicKey, error) {
		key, err := parse(row.PublicKey)
		return authstore.PublicKey{ID: row.ID, Key: key, SeenAt: row.SeenAt.Time}, err
	})
}

// Withdraw implements authstore.KeyRing.
func (r *Keyring) Withdraw(ctx context.Context, ids ...authstore.KeyID) error {
	if len(ids) == 0 {
		return nil
	}
	return r.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		for _, table := range []bun.Ident{plainKeys, otherKeys} {
			_, err := tx.NewDelete().Model((*signingKeyRow)(nil)).ModelTableExpr("? AS k", table).
				Where("id IN (?)", bun.List(ids)).Exec(ctx)
			if err != nil {
				return r.db.ClassifyError(err)
			}
		}
		return nil
	})
}

// RootSecret implements authstore.KeyRing.
//
// The database has the secret in plain form, so a person who can read a backup can forge everything
// that the secret protects. If SECRET_KEY is set, RootSecret is never called.
func (r *Keyring) RootSecret(ctx context.Context, candidate []byte) ([]byte, error) {
	row := new(rootSecretRow)
	_, err := database.Read(ctx, r.db, func(ctx context.Context, db bun.IDB) (struct{}, error) {
		return struct{}{}, r.db.ClassifyError(db.NewSelect().Model(row).Where("id = ?", rootSecretID).Scan(ctx))
	})
	if !fault.Is(err, fault.NotFound) {
		return row.Secret, err
	}
	err = r.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		_, err := tx.NewInsert().Model(&rootSecretRow{ID: rootSecretID, Secret: candidate}).
			On("CONFLICT DO NOTHING").Exec(ctx)
		if err != nil {
			return r.db.ClassifyError(err)
		}
		return r.db.ClassifyError(tx.NewSelect().Model(row).Where("id = ?", rootSecretID).Scan(ctx))
	})
	if err != nil {
		return nil, err
	}
	return row.Secret, nil
}

// SecretKey is a root secret that is not in the database; empty without one.
type SecretKey string

// NewRootSecret returns the key if it is set, else a secret that all instances share in the
// database.
func NewRootSecret(
	ctx context.Context, key SecretKey, ring authstore.KeyRing, e secrets.Entropy,
) (auth.RootSecret, error) {
	if key != "" {
		return auth.RootSecret(key), nil
	}
	candidate := make([]byte, 32)
	e.Fill(candidate)
	secret, err := ring.RootSecret(ctx, candidate)
	if err != nil {
		return nil, fmt.Errorf("root secret: %w", err)
	}
	return secret, nil
}
