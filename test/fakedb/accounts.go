package fakedb

import (
	"bytes"
	"cmp"
	"context"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// Accounts implements [authstore.Accounts].
type Accounts struct{ db *Database }

// NewAccounts returns the accounts of a database.
func NewAccounts(db *Database) *Accounts { return &Accounts{db: db} }

// Create adds an account.
func (s *Accounts) Create(ctx context.Context, a auth.Account) error {
	return s.db.writeTables(ctx, func(t *tables) error {
		if _, taken := t.auth.accounts[a.ID]; taken {
			return errConflict("the account id exists already")
		}
		if _, err := t.auth.findAccountByEmail(a.Email); err == nil {
			return errConflict("the e-mail address is already in use")
		}
		t.auth.accounts[a.ID] = copyAccount(a)
		return nil
	})
}

// Get implements [authstore.Accounts].
func (s *Accounts) Get(ctx context.Context, id auth.UserID) (a auth.Account, err error) {
	err = s.db.readTables(ctx, func(t *tables) error {
		a, err = t.auth.findAccount(id)
		return err
	})
	return a, err
}

// ByEmail implements [authstore.Accounts].
func (s *Accounts) ByEmail(ctx context.Context, email auth.Email) (a auth.Account, err error) {
	err = s.db.readTables(ctx, func(t *tables) error {
		a, err = t.auth.findAccountByEmail(email)
		return err
	})
	return a, err
}

// Update implements [authstore.Accounts].
func (s *Accounts) Update(ctx context.Context, id auth.UserID, change func(*auth.Account) error) error {
	return s.db.writeTables(ctx, func(t *tables) error {
		old, err := t.auth.findAccount(id)
		if err != nil {
			return err
		}
		a := old
		if err := change(&a); err != nil {
			return err
		}
		a.ID, a.Email, a.CreatedAt = old.ID, old.Email, old.CreatedAt
		t.auth.accounts[id] = copyAccount(a)
		return nil
	})
}

// List returns accounts in the order of their addresses.
func (s *Accounts) List(ctx context.Context, after auth.Email, limit int) (list []auth.Account, err error) {
	err = s.db.readTables(ctx, func(t *tables) error {
		list = selectRows(t.auth.accounts,
			func(a auth.Account) bool { return a.Email > after },
			func(a, b auth.Account) int { return cmp.Compare(a.Email, b.Email) }, limit)
		for i := range list {
			list[i] = copyAccount(list[i])
		}
		return nil
	})
	return list, err
}

func (t authTables) findAccount(id auth.UserID) (auth.Account, error) {
	a, ok := t.accounts[id]
	if !ok {
		return auth.Account{}, errNotFound("account")
	}
	return copyAccount(a), nil
}

func (t authTables) findAccountByEmail(email auth.Email) (auth.Account, error) {
	for id, a := range t.accounts {
		if a.Email == email {
			return t.findAccount(id)
		}
	}
	return auth.Account{}, errNotFound("account")
}

// copyAccount returns a copy that shares no memory with a, with times as a database stores them.
func copyAccount(a auth.Account) auth.Account {
	a.MFA.Secret = copyBytes(a.MFA.Secret)
	a.MFA.Recovery = append([]auth.RecoveryHash(nil), a.MFA.Recovery...)
	a.MFA.Enrolment.At = truncateToMicroseconds(a.MFA.Enrolment.At)
	a.CreatedAt, a.UpdatedAt = truncateToMicroseconds(a.CreatedAt), truncateToMicroseconds(a.UpdatedAt)
	return a
}

// copyBytes returns a copy of b, or nil if b is empty.
func copyBytes[B ~[]byte](b B) B {
	if len(b) == 0 {
		return nil
	}
	return bytes.Clone(b)
}
