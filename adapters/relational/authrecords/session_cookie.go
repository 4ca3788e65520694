package authrecords

import (
	"context"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/auth"
)

// sessionCookieStore stores the hashes of session cookies. It implements [authstore.SessionCookies].
type sessionCookieStore struct {
	table[auth.SessionCookie, sessionCookieRow]
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

func (s *sessionCookieStore) Add(ctx context.Context, c auth.SessionCookie) error {
	return s.insert(ctx, c)
}

func (s *sessionCookieStore) Find(ctx context.Context, h auth.TokenHash) (auth.SessionCookie, error) {
	return s.find(ctx, "hash = ?", hash(h))
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
