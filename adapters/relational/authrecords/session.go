package authrecords

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/ports/authstore"
)

// sessionStore stores sessions. It implements Sessions, SessionLevels, SessionHistory and
// SessionRetention of ports/authstore.
type sessionStore struct {
	keyed[auth.SessionID, auth.Session, sessionRow]
}

type sessionRow struct {
	bun.BaseModel `bun:"table:sessions"`

	ID             auth.SessionID      `bun:"id,pk"`
	UserID         auth.UserID         `bun:"user_id"`
	DeviceID       auth.DeviceID       `bun:"device_id"`
	DeviceIdentity auth.DeviceIdentity `bun:"device_identity"`
	TrustLevel     level               `bun:"trust_level"`
	RiskScore      int                 `bun:"risk_score"`
	CreatedAt      database.Instant    `bun:"created_at"`
	LastActivity   database.Instant    `bun:"last_activity"`
	ExpiresAt      database.Instant    `bun:"expires_at"`
	MaxExpiresAt   database.Instant    `bun:"max_expires_at"`
	IPAddress      address             `bun:"ip_address"`
	EndedAt        database.Instant    `bun:"ended_at"`
	EndReason      auth.EndReason      `bun:"end_reason"`

	ReauthenticatedAt database.Instant `bun:"reauthenticated_at"`
}

func newSessionRow(s auth.Session) *sessionRow {
	return &sessionRow{
		ID: s.ID, UserID: s.UserID, DeviceID: s.DeviceID, DeviceIdentity: s.DeviceIdentity,
		TrustLevel: level{s.TrustLevel}, RiskScore: s.RiskScore,
		CreatedAt: database.NewInstant(s.CreatedAt), LastActivity: database.NewInstant(s.LastActivity),
		ExpiresAt: database.NewInstant(s.ExpiresAt), MaxExpiresAt: database.NewInstant(s.MaxExpiresAt),
		IPAddress: address{s.IPAddress}, EndedAt: database.NewInstant(s.EndedAt), EndReason: s.EndReason,
		ReauthenticatedAt: database.NewInstant(s.ReauthenticatedAt),
	}
}

func (r *sessionRow) toSession() auth.Session {
	return auth.Session{
		ID: r.ID, UserID: r.UserID, DeviceID: r.DeviceID, DeviceIdentity: r.DeviceIdentity,
		TrustLevel: r.TrustLevel.TrustLevel, RiskScore: r.RiskScore,
		CreatedAt: r.CreatedAt.Time, LastActivity: r.LastActivity.Time,
		ExpiresAt: r.ExpiresAt.Time, MaxExpiresAt: r.MaxExpiresAt.Time,
		IPAddress: r.IPAddress.Addr, EndedAt: r.EndedAt.Time, EndReason: r.EndReason,
		ReauthenticatedAt: r.ReauthenticatedAt.Time,
	}
}

func (s *sessionStore) End(
	ctx context.Context, which authstore.SessionFilter, when time.Time, reason auth.EndReason,
) ([]auth.SessionID, error) {
	return s.updateActive(ctx, which, when, anyLevel, func(q *bun.UpdateQuery) {
		q.Set("ended_at = ?", database.NewInstant(when)).Set("end_reason = ?", reason)
	})
}

func (s *sessionStore) Lower(
	ctx context.Context, which authstore.SessionFilter, to auth.TrustLevel, when time.Time,
) ([]auth.SessionID, error) {
	above := func(q *bun.SelectQuery) {
		var names []string
		for l := to + 1; l <= auth.FullTrust; l++ {
			names = append(names, l.String())
		}
		q.Where("trust_level IN (?)", bun.List(names))
	}
	if to >= auth.FullTrust {
		return nil, ctx.Err()
	}
	return s.updateActive(ctx, which, when, above, func(q *bun.UpdateQuery) { q.Set("trust_level = ?", level{to}) })
}

// anyLevel selects the sessions of all levels.
func anyLevel(*bun.SelectQuery) {}

// updateActive changes the active sessions that the filter and narrow select, and returns their
// ids. It locks them in the order of their ids, so that two calls never wait for each other.
func (s *sessionStore) updateActive(
	ctx context.Context, which authstore.SessionFilter, when time.Time, narrow func(*bun.SelectQuery),
	set func(*bun.UpdateQuery),
) (ids []auth.SessionID, err error) {
	err = s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		ids = nil
		q := selectActive(tx.NewSelect().Model((*sessionRow)(nil)).Column("id"), which.UserID, when)
		if which.DeviceID != "" {
			q.Where("device_id = ?", which.DeviceID)
		}
		if which.Except != "" {
			q.Where("id <> ?", which.Except)
		}
		narrow(q)
		if err := s.db.LockForChange(q.Order("id")).Scan(ctx, &ids); err != nil {
			return s.db.ClassifyError(err)
		}
		if len(ids) == 0 {
			return nil
		}
		change := tx.NewUpdate().Model((*sessionRow)(nil)).Where("id IN (?)", bun.List(ids))
		set(change)
		_, err := change.Exec(ctx)
		return s.db.ClassifyError(err)
	})
	if err != nil {
		return nil, err
	}
	return ids, nil
}

func (s *sessionStore) Active(
	ctx context.Context, user auth.UserID, when time.Time, page auth.PageRequest,
) (list []auth.Session, total int, err error) {
	return s.readPage(ctx, page, func(q *bun.SelectQuery) *bun.SelectQuery {
		return selectActive(q, user, when).Order("created_at DESC", "id DESC")
	})
}

func (s *sessionStore) Trusted(ctx context.Context, user auth.UserID, limit int) ([]auth.Session, error) {
	if limit < 1 {
		return nil, ctx.Err()
	}
	return s.readList(ctx, func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("user_id = ?", user).
			Where("trust_level IN ('LIMITED_TRUST', 'FULL_TRUST')"). // the condition of the index sessions_trusted
			Order("created_at DESC", "id DESC").Limit(limit)
	})
}

func (s *sessionStore) CountSince(ctx context.Context, user auth.UserID, since time.Time) (int, error) {
	return database.Read(ctx, s.db, func(ctx context.Context, db bun.IDB) (int, error) {
		n, err := db.NewSelect().Model((*sessionRow)(nil)).
			Where("user_id = ?", user).Where("created_at > ?", database.NewInstant(since)).Count(ctx)
		return n, s.db.ClassifyError(err)
	})
}

// DeleteExpired implements authstore.SessionRetention. It also removes the refresh tokens and
// challenges of the sessions.
func (s *sessionStore) DeleteExpired(ctx context.Context, before time.Time) (int, error) {
	return s.db.InBatches(ctx, func(ctx context.Context, tx bun.IDB) (int, error) {
		var ids []auth.SessionID
		expired := tx.NewSelect().Model((*sessionRow)(nil)).Column("id").Where("expires_at < ?",
			database.NewInstant(before)).Order("expires_at").Limit(database.BatchSize)
		if err := s.db.LockForChange(expired).Scan(ctx, &ids); err != nil || len(ids) == 0 {
			return 0, s.db.ClassifyError(err)
		}
		for _, of := range []any{(*refreshTokenRow)(nil), (*challengeRow)(nil)} {
			if _, err := tx.NewDelete().Model(of).Where("session_id IN (?)", bun.List(ids)).Exec(ctx); err != nil {
				return 0, s.db.ClassifyError(err)
			}
		}
		return s.db.AffectedRows(tx.NewDelete().Model((*sessionRow)(nil)).Where("id IN (?)",
			bun.List(ids)).Exec(ctx))
	})
}

// selectActive selects the sessions of a user that are active at a time (auth.Session.Active).
func selectActive(q *bun.SelectQuery, user auth.UserID, when time.Time) *bun.SelectQuery {
	return q.Where("user_id = ?", user).Where("ended_at IS NULL").Where("expires_at > ?", database.NewInstant(when))
}

// sessionCookieStore stores the hashes of session cookies. It implements [authstore.SessionCookies].
type sessionCookieStore struct {
	hashed[auth.SessionCookie, sessionCookieRow]
}

type sessionCookieRow struct {
	bun.BaseModel `bun:"table:session_cookies"`

	Hash       hash             `bun:"hash,pk"`
	SessionID  auth.SessionID   `bun:"session_id"`
	UserID     auth.UserID      `bun:"user_id,nullzero"`
	TrustLevel level            `bun:"trust_level"`
	IssuedAt   database.Instant `bun:"issued_at"`
}

func newSessionCookieRow(c auth.SessionCookie) *sessionCookieRow {
	return &sessionCookieRow{
		Hash: hash(c.Hash), SessionID: c.SessionID, UserID: c.UserID, TrustLevel: level{c.TrustLevel},
		IssuedAt: database.NewInstant(c.IssuedAt),
	}
}

func (r *sessionCookieRow) toSessionCookie() auth.SessionCookie {
	return auth.SessionCookie{
		Hash: auth.TokenHash(r.Hash), SessionID: r.SessionID, UserID: r.UserID, TrustLevel: r.TrustLevel.TrustLevel,
		IssuedAt: r.IssuedAt.Time,
	}
}

// Replace implements authstore.SessionCookies. Of parallel calls, the condition of the update lets
// one succeed.
func (s *sessionCookieStore) Replace(ctx context.Context, h auth.TokenHash, by auth.SessionCookie) error {
	return s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		n, err := s.db.AffectedRows(tx.NewUpdate().Model((*sessionCookieRow)(nil)).
			Set("hash = ?", hash(by.Hash)).Set("user_id = ?", by.UserID).Set("trust_level = ?", level{by.TrustLevel}).
			Set("issued_at = ?", database.NewInstant(by.IssuedAt)).
			Where("hash = ?", hash(h)).Where("session_id = ?", by.SessionID).Exec(ctx))
		if err == nil && n == 0 {
			return noSuchRecord("session cookie")
		}
		return err
	})
}

// refreshTokenStore stores the hashes of refresh tokens, of all generations. It implements
// [authstore.RefreshTokens].
type refreshTokenStore struct {
	hashed[auth.RefreshToken, refreshTokenRow]
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

func (s *refreshTokenStore) Spend(ctx context.Context, h auth.TokenHash, when time.Time) error {
	return s.spend(ctx, h, when)
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
