package authrecords

import (
	"context"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/ports/authstore"
)

var _ authstore.SessionCookies = (*SessionCookies)(nil)

// SessionCookies stores the hashes of session cookies. It implements [authstore.SessionCookies].
type SessionCookies struct {
	rows table[auth.SessionCookie, sessionCookieRow]
}

// NewSessionCookies returns the session cookies of a database.
func NewSessionCookies(db *database.DB) *SessionCookies {
	return &SessionCookies{
		table[auth.SessionCookie, sessionCookieRow]{
			db, "session cookie", newSessionCookieRow, (*sessionCookieRow).toSessionCookie,
		},
	}
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

// Add implements authstore.SessionCookies.
func (s *SessionCookies) Add(ctx context.Context, c auth.SessionCookie) error {
	return s.rows.insert(ctx, c)
}

// Find implements authstore.SessionCookies.
func (s *SessionCookies) Find(ctx context.Context, h auth.TokenHash) (auth.SessionCookie, error) {
	return s.rows.find(ctx, "hash = ?", hash(h))
}

// Replace implements authstore.SessionCookies. Of parallel calls, the condition of the update lets
// one succeed.
func (s *SessionCookies) Replace(ctx context.Context, h auth.TokenHash, by auth.SessionCookie) error {
	return s.rows.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		n, err := s.rows.db.AffectedRows(tx.NewUpdate().Model((*sessionCookieRow)(nil)).
			Set("hash = ?", hash(by.Hash)).Set("user_id = ?", by.UserID).Set("trust_level = ?", level{by.TrustLevel}).
			Set("issued_at = ?", database.NewInstant(by.IssuedAt)).
			Where("hash = ?", hash(h)).Where("session_id = ?", by.SessionID).Exec(ctx))
		if err == nil && n == 0 {
			return noSuchRecord("session cookie")
		}
		return err
	})
}
