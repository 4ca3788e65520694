package fakedb

import (
	"cmp"
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// Accounts implements [authstore.Accounts].
type Accounts struct {
	*table[auth.UserID, auth.Account]
}

// NewAccounts returns the accounts of a database.
func NewAccounts(db *Database) *Accounts { return &Accounts{db.accounts} }

// ByEmail implements [authstore.Accounts].
func (s *Accounts) ByEmail(ctx context.Context, email auth.Email) (auth.Account, error) {
	return s.one(ctx, func(a auth.Account) bool { return a.Email == email }, byEmail)
}

// List implements [authstore.Accounts].
func (s *Accounts) List(ctx context.Context, after auth.Email, limit int) ([]auth.Account, error) {
	return s.listFirst(ctx, limit, func(a auth.Account) bool { return a.Email > after }, byEmail)
}

func byEmail(a, b auth.Account) int { return cmp.Compare(a.Email, b.Email) }

// Challenges implements [authstore.Challenges].
type Challenges struct {
	*table[auth.ChallengeID, auth.Challenge]
}

// NewChallenges returns the step-up challenges of a database.
func NewChallenges(db *Database) *Challenges { return &Challenges{db.challenges} }

// PendingLogins implements [authstore.PendingLogins].
type PendingLogins struct {
	*table[pendingKey, auth.PendingLogin]
}

// NewPendingLogins returns the pending logins of a database.
func NewPendingLogins(db *Database) *PendingLogins { return &PendingLogins{db.pendingLogins} }

// Put implements [authstore.PendingLogins].
func (s *PendingLogins) Put(ctx context.Context, p auth.PendingLogin) error {
	return s.db.run(ctx, func(ctx context.Context) error {
		if err := s.db.accounts.refer(p.UserID); err != nil {
			return err
		}
		now := storedTime(p.CreatedAt)
		_, err := s.removeAll(ctx, func(old auth.PendingLogin) bool {
			return old.UserID == p.UserID && !old.ExpiresAt.After(now)
		})
		return cmp.Or(err, s.put(ctx, p))
	})
}

// Find implements [authstore.PendingLogins].
func (s *PendingLogins) Find(
	ctx context.Context, user auth.UserID, identity auth.DeviceIdentity,
) (auth.PendingLogin, error) {
	return s.find(ctx, pendingKey{user, identity})
}

// Take implements [authstore.PendingLogins].
func (s *PendingLogins) Take(ctx context.Context, user auth.UserID, identity auth.DeviceIdentity) error {
	return s.remove(ctx, pendingKey{user, identity})
}

// RemoveAll implements [authstore.PendingLogins].
func (s *PendingLogins) RemoveAll(ctx context.Context, user auth.UserID) error {
	_, err := s.removeAll(ctx, func(p auth.PendingLogin) bool { return p.UserID == user })
	return err
}

// Lockouts implements [authstore.Lockouts].
type Lockouts struct {
	*table[auth.LockoutKey, lockoutRow]
}

// NewLockouts returns the lockouts of a database.
func NewLockouts(db *Database) *Lockouts { return &Lockouts{db.lockouts} }

// Update implements [authstore.Lockouts].
func (s *Lockouts) Update(ctx context.Context, key auth.LockoutKey, change func(*auth.Lockout) error) error {
	return s.db.run(ctx, func(ctx context.Context) error {
		l, err := s.Get(ctx, key)
		if err := cmp.Or(err, change(&l)); err != nil {
			return err
		}
		return s.put(ctx, lockoutRow{key, l})
	})
}

// Get implements [authstore.Lockouts].
func (s *Lockouts) Get(ctx context.Context, key auth.LockoutKey) (auth.Lockout, error) {
	l, err := s.find(ctx, key)
	return l.Lockout, ignoreNotFound(err)
}

// DeleteBefore implements [authstore.Lockouts].
func (s *Lockouts) DeleteBefore(ctx context.Context, before time.Time) (int, error) {
	before = storedTime(before)
	return s.removeAll(ctx, func(l lockoutRow) bool { return l.Lockout.Latest().Before(before) })
}
