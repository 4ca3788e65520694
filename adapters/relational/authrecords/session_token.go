package authrecords

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
)

var _ authstore.RefreshTokens = (*RefreshTokens)(nil)

// RefreshTokens keeps the hashes of refresh tokens, generation by generation.
// It answers ports/authstore.RefreshTokens.
type RefreshTokens struct{ db *database.DB }

// NewRefreshTokens returns the refresh tokens of a database.
func NewRefreshTokens(db *database.DB) *RefreshTokens { return &RefreshTokens{db: db} }

type refreshTokenRow struct {
	bun.BaseModel `bun:"table:refresh_tokens"`

	Hash      hash             `bun:"hash,pk"`
	SessionID auth.SessionID   `bun:"session_id"`
	IssuedAt  database.Instant `bun:"issued_at"`
	ExpiresAt database.Instant `bun:"expires_at"`
	SpentAt   database.Instant `bun:"spent_at"`
}

// Add stores a new token.
func (s *RefreshTokens) Add(ctx context.Context, t auth.RefreshToken) error {
	return s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		_, err := tx.NewInsert().Model(&refreshTokenRow{
			Hash: hash(t.Hash), SessionID: t.SessionID,
			IssuedAt: database.NewInstant(t.IssuedAt), ExpiresAt: database.NewInstant(t.ExpiresAt), SpentAt: database.NewInstant(t.SpentAt),
		}).Exec(ctx)
		return s.db.ClassifyError(err)
	})
}

// Find returns the token of a hash, spent or not.
func (s *RefreshTokens) Find(ctx context.Context, h auth.TokenHash) (auth.RefreshToken, error) {
	return database.Read(ctx, s.db, func(ctx context.Context, db bun.IDB) (auth.RefreshToken, error) {
		row := new(refreshTokenRow)
		if err := db.NewSelect().Model(row).Where("hash = ?", hash(h)).Scan(ctx); err != nil {
			return auth.RefreshToken{}, classifyLookup(s.db, err, "refresh token")
		}
		return auth.RefreshToken{
			Hash: auth.TokenHash(row.Hash), SessionID: row.SessionID,
			IssuedAt: row.IssuedAt.Time, ExpiresAt: row.ExpiresAt.Time, SpentAt: row.SpentAt.Time,
		}, nil
	})
}

// Spend marks an unspent token spent. The condition of the update decides
// between parallel calls.
func (s *RefreshTokens) Spend(ctx context.Context, h auth.TokenHash, when time.Time) error {
	return s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		n, err := s.db.AffectedRows(tx.NewUpdate().Model((*refreshTokenRow)(nil)).Set("spent_at = ?", database.NewInstant(when)).
			Where("hash = ?", hash(h)).Where("spent_at IS NULL").Exec(ctx))
		if err != nil || n == 1 {
			return err
		}
		known, err := tx.NewSelect().Model((*refreshTokenRow)(nil)).Where("hash = ?", hash(h)).Exists(ctx)
		switch {
		case err != nil:
			return s.db.ClassifyError(err)
		case known:
			return fault.New(fault.Conflict, "", "the refresh token is spent")
		}
		return noSuch("refresh token")
	})
}

// sessionsCleared is how many sessions lose their tokens in one transaction;
// one that is refreshed each quarter of an hour for a month has 2,880.
const sessionsCleared = 500

// DeleteExpired removes the tokens of sessions that have ended or expired by a
// time: nobody can refresh them any more, and a replay would end nothing.
func (s *RefreshTokens) DeleteExpired(ctx context.Context, before time.Time) (total int, err error) {
	for _, end := range []bun.Ident{"expires_at", "ended_at"} { // each has its index
		n, err := s.deleteOver(ctx, end, before)
		total += n
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

// deleteOver removes the tokens of the sessions of which one end has come.
func (s *RefreshTokens) deleteOver(ctx context.Context, end bun.Ident, before time.Time) (total int, err error) {
	for {
		var sessions, tokens int
		err := s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) (err error) {
			over := tx.NewSelect().Model((*sessionRow)(nil)).Column("id").Where("has_tokens").
				Where("? <= ?", end, database.NewInstant(before)).OrderExpr("?", end).Limit(sessionsCleared)
			sessions, tokens, err = s.deleteTokens(ctx, tx, over)
			return err
		})
		if err != nil {
			return total, err
		}
		total += tokens
		if sessions < sessionsCleared {
			return total, nil
		}
	}
}

// deleteTokens removes the tokens of sessions and notes that they have none.
func (s *RefreshTokens) deleteTokens(ctx context.Context, tx bun.IDB, over *bun.SelectQuery) (sessions, tokens int, err error) {
	var ids []auth.SessionID
	if err := s.db.LockForChange(over).Scan(ctx, &ids); err != nil || len(ids) == 0 {
		return 0, 0, s.db.ClassifyError(err)
	}
	tokens, err = s.db.AffectedRows(tx.NewDelete().Model((*refreshTokenRow)(nil)).Where("session_id IN (?)", bun.List(ids)).Exec(ctx))
	if err != nil {
		return 0, 0, err
	}
	_, err = tx.NewUpdate().Model((*sessionRow)(nil)).Set("has_tokens = ?", false).Where("id IN (?)", bun.List(ids)).Exec(ctx)
	return len(ids), tokens, s.db.ClassifyError(err)
}
