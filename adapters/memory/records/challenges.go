package records

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// Challenges implements [authstore.Challenges].
type Challenges struct{ db *Database }

// NewChallenges returns the step-up challenges of a database.
func NewChallenges(db *Database) *Challenges { return &Challenges{db: db} }

// Create adds a challenge.
func (s *Challenges) Create(ctx context.Context, c auth.Challenge) error {
	return s.db.write(ctx, func(t *tables) error {
		if _, ok := t.auth.accounts[c.UserID]; !ok {
			return missing("account")
		}
		if _, ok := t.auth.sessions[c.SessionID]; !ok {
			return missing("session")
		}
		if _, taken := t.auth.challenges[c.ID]; taken {
			return conflict("the challenge id is taken")
		}
		t.auth.challenges[c.ID] = keptChallenge(c)
		return nil
	})
}

// Get returns a challenge in any state.
func (s *Challenges) Get(ctx context.Context, id auth.ChallengeID) (c auth.Challenge, err error) {
	err = s.db.read(ctx, func(t *tables) error {
		stored, ok := t.auth.challenges[id]
		if !ok {
			return notFound("challenge")
		}
		c = keptChallenge(stored)
		return nil
	})
	return c, err
}

// Update lets change alter a challenge.
func (s *Challenges) Update(ctx context.Context, id auth.ChallengeID, change func(*auth.Challenge) error) error {
	return s.db.write(ctx, func(t *tables) error {
		stored, ok := t.auth.challenges[id]
		if !ok {
			return notFound("challenge")
		}
		c := keptChallenge(stored)
		if err := change(&c); err != nil {
			return err
		}
		c.ID = id
		t.auth.challenges[id] = keptChallenge(c)
		return nil
	})
}

// DeleteExpired removes the challenges that ended before a time.
func (s *Challenges) DeleteExpired(ctx context.Context, before time.Time) (n int, err error) {
	err = s.db.write(ctx, func(t *tables) error {
		n = deleted(t.auth.challenges, func(c auth.Challenge) bool { return c.ExpiresAt.Before(micros(before)) })
		return nil
	})
	return n, err
}

// keptChallenge is a challenge as a database gives it back, sharing nothing.
func keptChallenge(c auth.Challenge) auth.Challenge {
	c.CodeHash, c.Standby = kept(c.CodeHash), kept(c.Standby)
	c.CreatedAt, c.ExpiresAt = micros(c.CreatedAt), micros(c.ExpiresAt)
	return c
}
