package authrecords

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/auth"
)

// challengeStore stores the challenges of step-ups. It implements [authstore.Challenges].
type challengeStore struct {
	keyed[auth.ChallengeID, auth.Challenge, challengeRow]
}

type challengeRow struct {
	bun.BaseModel `bun:"table:challenges"`

	ID        auth.ChallengeID    `bun:"id,pk"`
	SessionID auth.SessionID      `bun:"session_id"`
	UserID    auth.UserID         `bun:"user_id"`
	Method    auth.StepUpMethod   `bun:"method"`
	CodeHash  []byte              `bun:"code_hash"`
	Standby   []byte              `bun:"standby_hash"`
	Attempts  int                 `bun:"attempts"`
	State     auth.ChallengeState `bun:"state"`
	CreatedAt database.Instant    `bun:"created_at"`
	ExpiresAt database.Instant    `bun:"expires_at"`
}

func newChallengeRow(c auth.Challenge) *challengeRow {
	return &challengeRow{
		ID: c.ID, SessionID: c.SessionID, UserID: c.UserID, Method: c.Method, CodeHash: nilToEmpty(c.CodeHash),
		Standby:  c.Standby,
		Attempts: c.Attempts, State: c.State, CreatedAt: database.NewInstant(c.CreatedAt),
		ExpiresAt: database.NewInstant(c.ExpiresAt),
	}
}

func (r *challengeRow) toChallenge() auth.Challenge {
	return auth.Challenge{
		ID: r.ID, SessionID: r.SessionID, UserID: r.UserID, Method: r.Method,
		CodeHash: emptyToNil[auth.CodeHash](r.CodeHash), Standby: emptyToNil[auth.CodeHash](r.Standby),
		Attempts: r.Attempts, State: r.State, CreatedAt: r.CreatedAt.Time, ExpiresAt: r.ExpiresAt.Time,
	}
}

func (s *challengeStore) DeleteExpired(ctx context.Context, before time.Time) (int, error) {
	return s.removeExpired(ctx, before, "id")
}

// pendingLoginStore stores logins that wait for their second factor. It implements
// [authstore.PendingLogins].
type pendingLoginStore struct {
	table[auth.PendingLogin, pendingRow]
}

type pendingRow struct {
	bun.BaseModel `bun:"table:pending_logins"`

	UserID         auth.UserID         `bun:"user_id,pk"`
	DeviceIdentity auth.DeviceIdentity `bun:"device_identity,pk"`
	Subject        auth.LockoutKey     `bun:"subject"`
	Proven         bool                `bun:"proven"`
	CompanyLogin   string              `bun:"company_login"`
	SessionUntil   database.Instant    `bun:"session_until,nullzero"`
	CreatedAt      database.Instant    `bun:"created_at"`
	ExpiresAt      database.Instant    `bun:"expires_at"`
}

func newPendingRow(p auth.PendingLogin) *pendingRow {
	return &pendingRow{
		UserID: p.UserID, DeviceIdentity: p.DeviceIdentity, Subject: p.Subject, Proven: p.Proven,
		CompanyLogin: p.Company.ID, SessionUntil: database.NewInstant(p.Company.Until),
		CreatedAt: database.NewInstant(p.CreatedAt), ExpiresAt: database.NewInstant(p.ExpiresAt),
	}
}

func (r *pendingRow) toPendingLogin() auth.PendingLogin {
	return auth.PendingLogin{
		UserID: r.UserID, DeviceIdentity: r.DeviceIdentity, Subject: r.Subject, Proven: r.Proven,
		Company:   auth.CompanyLogin{ID: r.CompanyLogin, Until: r.SessionUntil.Time},
		CreatedAt: r.CreatedAt.Time, ExpiresAt: r.ExpiresAt.Time,
	}
}

func (s *pendingLoginStore) Put(ctx context.Context, p auth.PendingLogin) error {
	return s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		_, err := tx.NewDelete().Model((*pendingRow)(nil)).
			Where("user_id = ?", p.UserID).Where("expires_at <= ?", database.NewInstant(p.CreatedAt)).Exec(ctx)
		if err != nil {
			return s.db.ClassifyError(err)
		}
		_, err = tx.NewInsert().Model(newPendingRow(p)).On("CONFLICT (user_id, device_identity) DO UPDATE").
			Set("subject = EXCLUDED.subject").Set("proven = EXCLUDED.proven").
			Set("company_login = EXCLUDED.company_login").Set("session_until = EXCLUDED.session_until").
			Set("created_at = EXCLUDED.created_at").Set("expires_at = EXCLUDED.expires_at").Exec(ctx)
		return s.db.ClassifyError(err)
	})
}

func (s *pendingLoginStore) Find(
	ctx context.Context, user auth.UserID, identity auth.DeviceIdentity,
) (auth.PendingLogin, error) {
	return s.find(ctx, "user_id = ? AND device_identity = ?", user, identity)
}

// Take implements authstore.PendingLogins. Of parallel calls, one removes the row.
func (s *pendingLoginStore) Take(ctx context.Context, user auth.UserID, identity auth.DeviceIdentity) error {
	return changeOne(ctx, s.db, noSuchRecord("pending login"),
		"DELETE FROM pending_logins WHERE user_id = ? AND device_identity = ?", string(user), string(identity))
}

func (s *pendingLoginStore) RemoveAll(ctx context.Context, user auth.UserID) error {
	return s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		_, err := tx.NewDelete().Model((*pendingRow)(nil)).Where("user_id = ?", user).Exec(ctx)
		return s.db.ClassifyError(err)
	})
}

func (s *pendingLoginStore) DeleteExpired(ctx context.Context, before time.Time) (int, error) {
	return s.removeExpired(ctx, before, "user_id", "device_identity")
}
