package records

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
	return s.db.write(ctx, func(t *tables) error {
		if _, taken := t.auth.accounts[a.ID]; taken {
			return conflict("the account id exists already")
		}
		if _, err := t.auth.accountOf(a.Email); err == nil {
			return conflict("the e-mail address is already in use")
		}
		t.auth.accounts[a.ID] = keptAccount(a)
		return nil
	})
}

// Get returns the account of an id.
func (s *Accounts) Get(ctx context.Context, id auth.UserID) (a auth.Account, err error) {
	err = s.db.read(ctx, func(t *tables) error {
		a, err = t.auth.account(id)
		return err
	})
	return a, err
}

// ByEmail returns the account of an address.
func (s *Accounts) ByEmail(ctx context.Context, email auth.Email) (a auth.Account, err error) {
	err = s.db.read(ctx, func(t *tables) error {
		a, err = t.auth.accountOf(email)
		return err
	})
	return a, err
}

// Update lets change alter an account.
func (s *Accounts) Update(ctx context.Context, id auth.UserID, change func(*auth.Account) error) error {
	return s.db.write(ctx, func(t *tables) error {
		old, err := t.auth.account(id)
		if err != nil {
			return err
		}
		a := old
		if err := change(&a); err != nil {
			return err
		}
		a.ID, a.Email, a.CreatedAt = old.ID, old.Email, old.CreatedAt
		t.auth.accounts[id] = keptAccount(a)
		return nil
	})
}

// List returns accounts in the order of their addresses.
func (s *Accounts) List(ctx context.Context, after auth.Email, limit int) (list []auth.Account, err error) {
	err = s.db.read(ctx, func(t *tables) error {
		list = selected(t.auth.accounts,
			func(a auth.Account) bool { return a.Email > after },
			func(a, b auth.Account) int { return cmp.Compare(a.Email, b.Email) }, limit)
		for i := range list {
			list[i] = keptAccount(list[i])
		}
		return nil
	})
	return list, err
}

func (t authTables) account(id auth.UserID) (auth.Account, error) {
	a, ok := t.accounts[id]
	if !ok {
		return auth.Account{}, notFound("account")
	}
	return keptAccount(a), nil
}

func (t authTables) accountOf(email auth.Email) (auth.Account, error) {
	for id, a := range t.accounts {
		if a.Email == email {
			return t.account(id)
		}
	}
	return auth.Account{}, notFound("account")
}

// keptAccount is an account as a database gives it back, sharing nothing.
func keptAccount(a auth.Account) auth.Account {
	a.MFA.Secret = kept(a.MFA.Secret)
	a.MFA.Recovery = append([]auth.RecoveryHash(nil), a.MFA.Recovery...)
	a.MFA.Enrolment.At = micros(a.MFA.Enrolment.At)
	a.CreatedAt, a.UpdatedAt = micros(a.CreatedAt), micros(a.UpdatedAt)
	return a
}

// kept is a copy of a byte string; an empty one is nil.
func kept[B ~[]byte](b B) B {
	if len(b) == 0 {
		return nil
	}
	return bytes.Clone(b)
}
