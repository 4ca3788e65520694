package authrecords

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/auth"
)

// linkStore stores the hashes of links. It implements [authstore.Links].
type linkStore struct{ hashed[auth.Link, linkRow] }

type linkRow struct {
	bun.BaseModel `bun:"table:links"`

	Hash      hash             `bun:"hash,pk"`
	Purpose   auth.LinkPurpose `bun:"purpose"`
	UserID    auth.UserID      `bun:"user_id,nullzero"`
	CreatedAt database.Instant `bun:"created_at"`
	ExpiresAt database.Instant `bun:"expires_at"`
}

func newLinkRow(l auth.Link) *linkRow {
	return &linkRow{
		Hash: hash(l.Hash), Purpose: l.Purpose, UserID: l.UserID,
		CreatedAt: database.NewInstant(l.CreatedAt), ExpiresAt: database.NewInstant(l.ExpiresAt),
	}
}

func (r *linkRow) toLink() auth.Link {
	return auth.Link{
		Hash: auth.TokenHash(r.Hash), Purpose: r.Purpose, UserID: r.UserID,
		CreatedAt: r.CreatedAt.Time, ExpiresAt: r.ExpiresAt.Time,
	}
}

func (s *linkStore) Put(ctx context.Context, l auth.Link) error { return s.insert(ctx, l) }

// Take implements authstore.Links. Of parallel calls, one removes the row.
func (s *linkStore) Take(ctx context.Context, h auth.TokenHash) error {
	return changeOne(ctx, s.db, noSuchRecord("link"), "DELETE FROM links WHERE hash = ?", hash(h))
}

func (s *linkStore) RemoveAll(ctx context.Context, user auth.UserID, purposes ...auth.LinkPurpose) error {
	return s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		q := tx.NewDelete().Model((*linkRow)(nil)).Where("purpose IN (?)", bun.List(purposes))
		if user == "" {
			q = q.Where("user_id IS NULL")
		} else {
			q = q.Where("user_id = ?", user)
		}
		_, err := q.Exec(ctx)
		return s.db.ClassifyError(err)
	})
}

func (s *linkStore) DeleteExpired(ctx context.Context, before time.Time) (int, error) {
	return s.removeExpired(ctx, before, "hash")
}
