package fakedb

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
	return s.db.writeTables(ctx, func(t *tables) error {
		if _, ok := t.auth.accounts[c.UserID]; !ok {
			return errMissing("account")
		}
		if _, ok := t.auth.sessions[c.SessionID]; !ok {
			return errMissing("session")
		}
		if _, taken := t.auth.challenges[c.ID]; taken {
			return errConflict("the challenge id is already in use")
		}
		t.auth.challenges[c.ID] = copyChallenge(c)
		return nil
	})
}

// Get returns a challenge, whatever its state.
func (s *Challenges) Get(ctx context.Context, id auth.ChallengeID) (c auth.Challenge, err error) {
	err = s.db.readTables(ctx, func(t *tables) error {
		stored, ok := t.auth.challenges[id]
		if !ok {
			return errNotFound("challenge")
		}
		c = copyChallenge(stored)
		return nil
	})
	return c, err
}

// Update implements [authstore.Challenges].
func (s *Challenges) Update(ctx context.Context, id auth.ChallengeID, change func(*auth.Challenge) error) error {
	return s.db.writeTables(ctx, func(t *tables) error {
		stored, ok := t.auth.challenges[id]
		if !ok {
			return errNotFound("challenge")
		}
		c := copyChallenge(stored)
		if err := change(&c); err != nil {
			return err
		}
		c.ID = id
		t.auth.challenges[id] = copyChallenge(c)
		return nil
	})
}

// DeleteExpired deletes the challenges that ended before a time.
func (s *Challenges) DeleteExpired(ctx context.Context, before time.Time) (n int, err error) {
	err = s.db.writeTables(ctx, func(t *tables) error {
		n = deleteRows(t.auth.challenges, func(c auth.Challenge) bool { return c.ExpiresAt.Before(truncateToMicroseconds(before)) })
		return nil
	})
	return n, err
}

// copyChallenge returns a copy that shares no memory with c, with times as a database stores them.
func copyChallenge(c auth.Challenge) auth.Challenge {
	c.CodeHash, c.Standby = copyBytes(c.CodeHash), copyBytes(c.Standby)
	c.CreatedAt, c.ExpiresAt = truncateToMicroseconds(c.CreatedAt), truncateToMicroseconds(c.ExpiresAt)
	return c
}
