package authrecords

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/ports/authstore"
)

var _ authstore.Challenges = (*Challenges)(nil)

// Challenges keeps step-ups that wait for their code. It implements [authstore.Challenges].
type Challenges struct{ db *database.DB }

// NewChallenges returns the step-up challenges of a database.
func NewChallenges(db *database.DB) *Challenges { return &Challenges{db: db} }

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

func rowOfChallenge(c auth.Challenge) *challengeRow {
	return &challengeRow{
		ID: c.ID, SessionID: c.SessionID, UserID: c.UserID, Method: c.Method, CodeHash: filled(c.CodeHash), Standby: c.Standby,
		Attempts: c.Attempts, State: c.State, CreatedAt: database.NewInstant(c.CreatedAt), ExpiresAt: database.NewInstant(c.ExpiresAt),
	}
}

func (r *challengeRow) toChallenge() auth.Challenge {
	return auth.Challenge{
		ID: r.ID, SessionID: r.SessionID, UserID: r.UserID, Method: r.Method, CodeHash: emptied[auth.CodeHash](r.CodeHash), Standby: emptied[auth.CodeHash](r.Standby),
		Attempts: r.Attempts, State: r.State, CreatedAt: r.CreatedAt.Time, ExpiresAt: r.ExpiresAt.Time,
	}
}

// Create adds a challenge.
func (s *Challenges) Create(ctx context.Context, c auth.Challenge) error {
	return s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		_, err := tx.NewInsert().Model(rowOfChallenge(c)).Exec(ctx)
		return s.db.ClassifyError(err)
	})
}

// Get returns a challenge in any state.
func (s *Challenges) Get(ctx context.Context, id auth.ChallengeID) (auth.Challenge, error) {
	return database.Read(ctx, s.db, func(ctx context.Context, db bun.IDB) (auth.Challenge, error) {
		return s.findOne(ctx, db.NewSelect().Where("id = ?", id))
	})
}

// Update lets change alter a challenge.
func (s *Challenges) Update(ctx context.Context, id auth.ChallengeID, change func(*auth.Challenge) error) error {
	return s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		c, err := s.findOne(ctx, s.db.LockForChange(tx.NewSelect().Where("id = ?", id)))
		if err != nil {
			return err
		}
		if err := change(&c); err != nil {
			return err
		}
		_, err = tx.NewUpdate().Model(rowOfChallenge(c)).ExcludeColumn("id").Where("id = ?", id).Exec(ctx)
		return s.db.ClassifyError(err)
	})
}

// DeleteExpired removes the challenges that ended before a time.
func (s *Challenges) DeleteExpired(ctx context.Context, before time.Time) (int, error) {
	return s.db.InBatches(ctx, func(ctx context.Context, tx bun.IDB) (int, error) {
		old := tx.NewSelect().Model((*challengeRow)(nil)).Column("id").Where("expires_at < ?", database.NewInstant(before)).
			Order("expires_at").Limit(database.BatchSize)
		return s.db.AffectedRows(tx.NewDelete().Model((*challengeRow)(nil)).Where("id IN (?)", old).Exec(ctx))
	})
}

func (s *Challenges) findOne(ctx context.Context, q *bun.SelectQuery) (auth.Challenge, error) {
	row := new(challengeRow)
	if err := q.Model(row).Scan(ctx); err != nil {
		return auth.Challenge{}, classifyLookup(s.db, err, "challenge")
	}
	return row.toChallenge(), nil
}
