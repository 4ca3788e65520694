package fakedb

import (
	"cmp"
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// Accounts implements [authstore.Accounts].
type Accounts struct{ db *Database }

// NewAccounts returns the accounts of a database.
func NewAccounts(db *Database) *Accounts { return &Accounts{db} }

// Create implements [authstore.Accounts].
func (s *Accounts) Create(ctx context.Context, a auth.Account) error {
	return s.db.accounts.insert(ctx, a)
}

// Get implements [authstore.Accounts].
func (s *Accounts) Get(ctx context.Context, id auth.UserID) (auth.Account, error) {
	return s.db.accounts.find(ctx, id)
}

// ByEmail implements [authstore.Accounts].
func (s *Accounts) ByEmail(ctx context.Context, email auth.Email) (auth.Account, error) {
	found, err := s.db.accounts.list(ctx, func(a auth.Account) bool { return a.Email == email }, byEmail)
	if err == nil && len(found) == 0 {
		err = s.db.accounts.errNotFound()
	}
	if err != nil {
		return auth.Account{}, err
	}
	return found[0], nil
}

// Update implements [authstore.Accounts].
func (s *Accounts) Update(ctx context.Context, id auth.UserID, change func(*auth.Account) error) error {
	return s.db.accounts.update(ctx, id, func(a *auth.Account) error {
		old := *a
		err := change(a)
		a.ID, a.Email, a.CreatedAt = old.ID, old.Email, old.CreatedAt
		return err
	})
}

// List implements [authstore.Accounts].
func (s *Accounts) List(ctx context.Context, after auth.Email, limit int) ([]auth.Account, error) {
	found, err := s.db.accounts.list(ctx, func(a auth.Account) bool { return a.Email > after }, byEmail)
	return first(found, limit), err
}

func byEmail(a, b auth.Account) int { return cmp.Compare(a.Email, b.Email) }

// Challenges implements [authstore.Challenges].
type Challenges struct{ db *Database }

// NewChallenges returns the step-up challenges of a database.
func NewChallenges(db *Database) *Challenges { return &Challenges{db} }

// Create implements [authstore.Challenges].
func (s *Challenges) Create(ctx context.Context, c auth.Challenge) error {
	return s.db.run(ctx, func(ctx context.Context) error {
		if err := cmp.Or(s.db.accounts.refer(c.UserID), s.db.sessions.refer(c.SessionID)); err != nil {
			return err
		}
		return s.db.challenges.insert(ctx, c)
	})
}

// Get implements [authstore.Challenges].
func (s *Challenges) Get(ctx context.Context, id auth.ChallengeID) (auth.Challenge, error) {
	return s.db.challenges.find(ctx, id)
}

// Update implements [authstore.Challenges].
func (s *Challenges) Update(ctx context.Context, id auth.ChallengeID, change func(*auth.Challenge) error) error {
	return s.db.challenges.update(ctx, id, func(c *auth.Challenge) error {
		err := change(c)
		c.ID = id
		return err
	})
}

// DeleteExpired implements [authstore.Challenges].
func (s *Challenges) DeleteExpired(ctx context.Context, before time.Time) (int, error) {
	before = storedTime(before)
	return s.db.challenges.removeAll(ctx, func(c auth.Challenge) bool { return c.ExpiresAt.Before(before) })
}

// PendingLogins implements [authstore.PendingLogins].
type PendingLogins struct{ db *Database }

// NewPendingLogins returns the pending logins of a database.
func NewPendingLogins(db *Database) *PendingLogins { return &PendingLogins{db} }

// Put implements [authstore.PendingLogins].
func (s *PendingLogins) Put(ctx context.Context, p auth.PendingLogin) error {
	return s.db.run(ctx, func(ctx context.Context) error {
		if err := s.db.accounts.refer(p.UserID); err != nil {
			return err
		}
		now := storedTime(p.CreatedAt)
		_, err := s.db.pendingLogins.removeAll(ctx, func(old auth.PendingLogin) bool {
			return old.UserID == p.UserID && !old.ExpiresAt.After(now)
		})
		return cmp.Or(err, s.db.pendingLogins.put(ctx, p))
	})
}

// Find implements [authstore.PendingLogins].
func (s *PendingLogins) Find(
	ctx context.Context, user auth.UserID, identity auth.DeviceIdentity,
) (auth.PendingLogin, error) {
	return s.db.pendingLogins.find(ctx, pendingKey{user, identity})
}

// Take implements [authstore.PendingLogins].
func (s *PendingLogins) Take(ctx context.Context, user auth.UserID, identity auth.DeviceIdentity) error {
	return s.db.pendingLogins.remove(ctx, pendingKey{user, identity})
}

// RemoveAll implements [authstore.PendingLogins].
func (s *PendingLogins) RemoveAll(ctx context.Context, user auth.UserID) error {
	_, err := s.db.pendingLogins.removeAll(ctx, func(p auth.PendingLogin) bool { return p.UserID == user })
	return err
}

// DeleteExpired implements [authstore.PendingLogins].
func (s *PendingLogins) DeleteExpired(ctx context.Context, before time.Time) (int, error) {
	before = storedTime(before)
	return s.db.pendingLogins.removeAll(ctx, func(p auth.PendingLogin) bool { return p.ExpiresAt.Before(before) })
}

// Lockouts implements [authstore.Lockouts].
type Lockouts struct{ db *Database }

// NewLockouts returns the lockouts of a database.
func NewLockouts(db *Database) *Lockouts { return &Lockouts{db} }

// Update implements [authstore.Lockouts].
func (s *Lockouts) Update(ctx context.Context, key auth.LockoutKey, change func(*auth.Lockout) error) error {
	return s.db.run(ctx, func(ctx context.Context) error {
		l, err := s.Get(ctx, key)
		if err := cmp.Or(err, change(&l)); err != nil {
			return err
		}
		return s.db.lockouts.put(ctx, lockoutRow{key, l})
	})
}

// Get implements [authstore.Lockouts].
func (s *Lockouts) Get(ctx context.Context, key auth.LockoutKey) (auth.Lockout, error) {
	l, err := s.db.lockouts.find(ctx, key)
	if fault.Is(err, fault.NotFound) {
		err = nil
	}
	return l.Lockout, err
}

// DeleteBefore implements [authstore.Lockouts].
func (s *Lockouts) DeleteBefore(ctx context.Context, before time.Time) (int, error) {
	before = storedTime(before)
	return s.db.lockouts.removeAll(ctx, func(l lockoutRow) bool { return l.Lockout.Latest().Before(before) })
}
