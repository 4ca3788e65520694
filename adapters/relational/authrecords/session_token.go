package authrecords

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// refreshTokenStore stores the hashes of refresh tokens, of all generations. It implements
// [authstore.RefreshTokens].
type refreshTokenStore struct {
	table[auth.RefreshToken, refreshTokenRow]
}

type refreshTokenRow struct {
	bun.BaseModel `bun:"table:refresh_tokens"`

	Hash      hash             `bun:"hash,pk"`
	SessionID auth.SessionID   `bun:"session_id"`
	IssuedAt  database.Instant `bun:"issued_at"`
	ExpiresAt database.Instant `bun:"expires_at"`
	SpentAt   database.Instant `bun:"spent_at"`
}

func newRefreshTokenRow(t auth.RefreshToken) *refreshTokenRow {
	return &refreshTokenRow{
		Hash: hash(t.Hash), SessionID: t.SessionID, IssuedAt: database.NewInstant(t.IssuedAt),
		ExpiresAt: database.NewInstant(t.ExpiresAt), SpentAt: database.NewInstant(t.SpentAt),
	}
}

func (r *refreshTokenRow) toRefreshToken() auth.RefreshToken {
	return auth.RefreshToken{
		Hash: auth.TokenHash(r.Hash), SessionID: r.SessionID,
		IssuedAt: r.IssuedAt.Time, ExpiresAt: r.ExpiresAt.Time, SpentAt: r.SpentAt.Time,
	}
}

func (s *refreshTokenStore) Add(ctx context.Context, t auth.RefreshToken) error {
	return s.insert(ctx, t)
}

func (s *refreshTokenStore) Find(ctx context.Context, h auth.TokenHash) (auth.RefreshToken, error) {
	return s.find(ctx, "hash = ?", hash(h))
}

// Spend implements authstore.RefreshTokens. Of parallel calls, the condition of the update lets one
// succeed.
func (s *refreshTokenStore) Spend(ctx context.Context, h auth.TokenHash, when time.Time) error {
	return s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		n, err := s.db.AffectedRows(tx.NewUpdate().Model((*refreshTokenRow)(nil)).Set("spent_at = ?",
			database.NewInstant(when)).
			Where("hash = ?", hash(h)).Where("spent_at IS NULL").Exec(ctx))
		if err != nil || n == 1 {
			return err
		}
		known, err := tx.NewSelect().Model((*refreshTokenRow)(nil)).Where("hash = ?", hash(h)).Exists(ctx)
		switch {
		case err != nil:
			return s.db.ClassifyError(err)
		case known:
			return fault.New(fault.Conflict, "the refresh token is spent")
		}
		return noSuchRecord("refresh token")
	})
}

// sessionsPerBatch is how many sessions lose their tokens in one transaction. A session that is
// refreshed every quarter of an hour for a month has 2,880 tokens.
const sessionsPerBatch = 500

// DeleteExpired implements authstore.RefreshTokens. It removes the tokens of sessions that ended or
// expired: they cannot be refreshed, and there is no session that the replay of a token could end.
func (s *refreshTokenStore) DeleteExpired(ctx context.Context, before time.Time) (total int, err error) {
	for _, column := range []bun.Ident{"expires_at", "ended_at"} { // each has its index
		n, err := s.removeTokens(ctx, column, before)
		total += n
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

// removeTokens removes the tokens of the sessions whose time in a column has come.
func (s *refreshTokenStore) removeTokens(ctx context.Context, column bun.Ident, before time.Time) (total int, err error) {
	for {
		var sessions, tokens int
		err := s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) (err error) {
			over := tx.NewSelect().Model((*sessionRow)(nil)).Column("id").Where("has_tokens").
				Where("? <= ?", column, database.NewInstant(before)).OrderExpr("?", column).Limit(sessionsPerBatch)
			sessions, tokens, err = s.removeTokensOf(ctx, tx, over)
			return err
		})
		if err != nil {
			return total, err
		}
		total += tokens
		if sessions < sessionsPerBatch {
			return total, nil
		}
	}
}

// removeTokensOf removes the tokens of the sessions that a query selects and what is deferred for
// them, and stores that they have no tokens.
func (s *refreshTokenStore) removeTokensOf(
	ctx context.Context, tx bun.IDB, over *bun.SelectQuery,
) (sessions, tokens int, err error) {
	var ids []auth.SessionID
	if err := s.db.LockForChange(over).Scan(ctx, &ids); err != nil || len(ids) == 0 {
		return 0, 0, s.db.ClassifyError(err)
	}
	tokens, err = s.db.AffectedRows(tx.NewDelete().Model((*refreshTokenRow)(nil)).Where("session_id IN (?)",
		bun.List(ids)).Exec(ctx))
	if err != nil {
		return 0, 0, err
	}
	if _, err := s.db.ExecStatement(ctx, tx, "DELETE FROM history_deferred WHERE session_id IN (?)",
		bun.List(ids)); err != nil {
		return 0, 0, err
	}
	_, err = tx.NewUpdate().Model((*sessionRow)(nil)).Set("has_tokens = ?", false).Where("id IN (?)",
		bun.List(ids)).Exec(ctx)
	return len(ids), tokens, s.db.ClassifyError(err)
}
