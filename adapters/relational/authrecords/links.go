package authrecords

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/ports/authstore"
)

var _ authstore.Links = (*Links)(nil)

// Links stores the hashes of links. It implements [authstore.Links].
type Links struct {
	rows table[auth.Link, linkRow]
}

// NewLinks returns the links of a database.
func NewLinks(db *database.DB) *Links {
	return &Links{table[auth.Link, linkRow]{db, "link", newLinkRow, (*linkRow).toLink}}
}

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

// Put implements authstore.Links.
func (s *Links) Put(ctx context.Context, l auth.Link) error { return s.rows.insert(ctx, l) }

// Find implements authstore.Links.
func (s *Links) Find(ctx context.Context, h auth.TokenHash) (auth.Link, error) {
	return s.rows.find(ctx, "hash = ?", hash(h))
}

// Take implements authstore.Links. Of parallel calls, one removes the row.
func (s *Links) Take(ctx context.Context, h auth.TokenHash) error {
	n, err := s.rows.db.Exec(ctx, "DELETE FROM links WHERE hash = ?", hash(h))
	if err == nil && n == 0 {
		return noSuchRecord("link")
	}
	return err
}

// RemoveAll implements authstore.Links.
func (s *Links) RemoveAll(ctx context.Context, user auth.UserID, purposes ...auth.LinkPurpose) error {
	return s.rows.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		q := tx.NewDelete().Model((*linkRow)(nil)).Where("purpose IN (?)", bun.List(purposes))
		if user == "" {
			q = q.Where("user_id IS NULL")
		} else {
			q = q.Where("user_id = ?", user)
		}
		_, err := q.Exec(ctx)
		return s.rows.db.ClassifyError(err)
	})
}

// DeleteExpired implements authstore.Links.
func (s *Links) DeleteExpired(ctx context.Context, before time.Time) (int, error) {
	return s.rows.removeExpired(ctx, before, "hash")
}
