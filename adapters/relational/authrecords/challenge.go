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
	table[auth.Challenge, challengeRow]
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

func (s *challengeStore) Create(ctx context.Context, c auth.Challenge) error {
	return s.insert(ctx, c)
}

func (s *challengeStore) Get(ctx context.Context, id auth.ChallengeID) (auth.Challenge, error) {
	return s.find(ctx, "id = ?", id)
}

func (s *challengeStore) Update(ctx context.Context, id auth.ChallengeID, change func(*auth.Challenge) error) error {
	return s.update(ctx, id, change)
}

func (s *challengeStore) DeleteExpired(ctx context.Context, before time.Time) (int, error) {
	return s.removeExpired(ctx, before, "id")
}
