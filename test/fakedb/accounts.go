package fakedb

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/service"
	"github.com/tollgate-dev/tollgate/ports/authstore"
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

// Links implements [authstore.Links].
type Links struct {
	*table[auth.TokenHash, auth.Link]
}

// NewLinks returns the links of a database.
func NewLinks(db *Database) *Links { return &Links{db.links} }

// Put implements [authstore.Links].
func (s *Links) Put(ctx context.Context, l auth.Link) error { return s.insert(ctx, l) }

// RemoveAll implements [authstore.Links].
func (s *Links) RemoveAll(ctx context.Context, user auth.UserID, purposes ...auth.LinkPurpose) error {
	_, err := s.removeAll(ctx, func(l auth.Link) bool {
		return l.UserID == user && slices.Contains(purposes, l.Purpose)
	})
	return err
}

// Directory implements [authstore.Directory] and [authstore.Operators].
type Directory struct{ db *Database }

// NewDirectory returns the directory of a database.
func NewDirectory(db *Database) *Directory { return &Directory{db} }

// Search implements [authstore.Directory].
func (s *Directory) Search(ctx context.Context, q authstore.DirectoryQuery) ([]authstore.Person, error) {
	return result(ctx, s.db, func(ctx context.Context) (people []authstore.Person, err error) {
		part := strings.ToLower(q.Part)
		found, err := s.db.accounts.list(ctx, func(a auth.Account) bool {
			return a.Email > q.After && (q.ID == "" || a.ID == q.ID) && (q.State == "" || a.State == q.State) &&
				(q.AdmittedAt.IsZero() || a.AdmittedUntil.After(q.AdmittedAt)) && (!q.Left || s.left(a.ID) != "") &&
				(strings.Contains(string(a.Email), part) || strings.Contains(strings.ToLower(a.Name), part))
		}, byEmail)
		for _, a := range first(found, q.Limit) {
			person := authstore.Person{Account: a, Left: s.left(a.ID)}
			for _, session := range s.db.sessions.rows {
				if session.UserID == a.ID && session.CreatedAt.After(person.LastSignIn) {
					person.LastSignIn = session.CreatedAt
				}
				if person.Left != "" && session.UserID == a.ID && session.EndReason == auth.EndCompany &&
					session.EndedAt.After(person.LeftAt) {
					person.LeftAt = session.EndedAt
				}
			}
			for _, i := range s.db.identities.rows {
				person.Identities += map[bool]int{true: 1}[i.UserID == a.ID]
			}
			for _, p := range s.db.passkeys.rows {
				person.Passkeys += map[bool]int{true: 1}[p.UserID == a.ID]
			}
			people = append(people, person)
		}
		return people, err
	})
}

// left returns the company that lets a person in no more.
func (s *Directory) left(user auth.UserID) (left company.Name) {
	for _, i := range s.db.identities.rows {
		switch {
		case i.UserID != user:
		case !i.ConfirmedAt.IsZero():
			return ""
		default:
			left = cmp.Or(max(left, i.Membership.Provider), "company")
		}
	}
	return left
}

// Count implements [authstore.Directory].
func (s *Directory) Count(ctx context.Context, most int) (int, error) {
	return result(ctx, s.db, func(context.Context) (int, error) { return min(len(s.db.accounts.rows), most), nil })
}

// Groups implements [authstore.Directory].
func (s *Directory) Groups(ctx context.Context) ([]string, error) {
	return result(ctx, s.db, func(context.Context) ([]string, error) {
		var all []company.Membership
		var people []int
		for _, i := range s.db.identities.rows {
			all, people = append(all, i.Membership), append(people, 1)
		}
		return company.CountedGroups(all, people), nil
	})
}

// Lock implements [authstore.Operators]: one transaction runs at a time.
func (s *Directory) Lock(ctx context.Context) error { return ctx.Err() }

// Any implements [authstore.Operators].
func (s *Directory) Any(ctx context.Context) (bool, error) {
	return result(ctx, s.db, func(context.Context) (bool, error) {
		for _, g := range s.db.grants.rows {
			a, known := s.db.accounts.rows[auth.UserID(g.Holder)]
			if known && a.State == auth.AccountActive && g.Action == registry.ActionOperate {
				return true, nil
			}
		}
		return false, nil
	})
}

// Passkeys implements [authstore.Passkeys].
type Passkeys struct {
	*table[auth.PasskeyID, auth.Passkey]
}

// NewPasskeys returns the passkeys of a database.
func NewPasskeys(db *Database) *Passkeys { return &Passkeys{db.passkeys} }

func byCreation(a, b auth.Passkey) int {
	return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
}

// Find implements [authstore.Passkeys].
func (s *Passkeys) Find(ctx context.Context, id auth.CredentialID) (auth.Passkey, error) {
	return s.one(ctx, func(p auth.Passkey) bool { return p.Credential.ID == id }, byCreation)
}

// Of implements [authstore.Passkeys].
func (s *Passkeys) Of(ctx context.Context, user auth.UserID) ([]auth.Passkey, error) {
	return s.list(ctx, func(p auth.Passkey) bool { return p.UserID == user }, byCreation)
}

// Remove implements [authstore.Passkeys].
func (s *Passkeys) Remove(ctx context.Context, user auth.UserID, id auth.PasskeyID) error {
	return s.db.run(ctx, func(ctx context.Context) error {
		if s.rows[id].UserID != user {
			return s.errNotFound()
		}
		return s.remove(ctx, id)
	})
}

// APITokens implements [authstore.APITokens] and [authstore.APITokenExpiry].
type APITokens struct {
	*table[auth.APITokenID, auth.APIToken]
}

// NewAPITokens returns the tokens of a database.
func NewAPITokens(db *Database) *APITokens { return &APITokens{db.apiTokens} }

// owner returns whether an owner exists and whether it is active.
func (s *APITokens) owner(o auth.Owner) (exists, active bool) {
	if name, ok := o.Service(); ok {
		account, ok := s.db.services.rows[service.Name(name)]
		return ok, account.State == service.Active
	}
	account, ok := s.db.accounts.rows[auth.UserID(o)]
	return ok, account.State == auth.AccountActive
}

// Add implements [authstore.APITokens].
func (s *APITokens) Add(ctx context.Context, t auth.APIToken) error {
	return s.db.run(ctx, func(ctx context.Context) error {
		if exists, _ := s.owner(t.Owner); !exists {
			return s.errNotFound()
		}
		living, err := s.list(ctx, func(other auth.APIToken) bool {
			return isOf(other, t.Owner) && other.ExpiresAt.After(t.CreatedAt)
		}, compareAPITokens)
		if err == nil && len(living) >= t.Owner.MaxTokens() && !t.Workload {
			err = fault.New(fault.Conflict, "there are too many tokens")
		}
		return cmp.Or(err, s.insert(ctx, t))
	})
}

func isOf(t auth.APIToken, o auth.Owner) bool { return t.Owner == o && !t.Workload }

func compareAPITokens(a, b auth.APIToken) int { return cmp.Compare(a.ID, b.ID) }

// Find implements [authstore.APITokens].
func (s *APITokens) Find(ctx context.Context, hash auth.TokenHash) (auth.APIToken, error) {
	return s.one(ctx, func(t auth.APIToken) bool {
		_, active := s.owner(t.Owner)
		return t.Hash == hash && active
	}, compareAPITokens)
}

// Of implements [authstore.APITokens].
func (s *APITokens) Of(
	ctx context.Context, owner auth.Owner, after auth.APITokenID, limit int,
) ([]auth.APIToken, error) {
	return s.listFirst(ctx, limit, func(t auth.APIToken) bool { return isOf(t, owner) && t.ID > after }, compareAPITokens)
}

// Remove implements [authstore.APITokens].
func (s *APITokens) Remove(ctx context.Context, owner auth.Owner, id auth.APITokenID) (auth.APIToken, error) {
	return result(ctx, s.db, func(ctx context.Context) (auth.APIToken, error) {
		t, err := s.find(ctx, id)
		if err == nil && !isOf(t, owner) {
			err = s.errNotFound()
		}
		if err != nil {
			return auth.APIToken{}, err
		}
		return t, s.remove(ctx, id)
	})
}

// Use implements [authstore.APITokens].
func (s *APITokens) Use(ctx context.Context, t auth.APIToken) error {
	return ignoreNotFound(s.update(ctx, t.ID, func(stored *auth.APIToken) error {
		if t.LastUsedAt.After(stored.LastUsedAt) {
			stored.LastUsedAt, stored.LastUsedFrom = t.LastUsedAt, t.LastUsedFrom
		}
		return nil
	}))
}

// Due implements [authstore.APITokenExpiry].
func (s *APITokens) Due(ctx context.Context, now time.Time, limit int) ([]auth.APIToken, error) {
	return s.listFirst(ctx, limit, func(t auth.APIToken) bool {
		return !t.NoticeAt.IsZero() && !t.NoticeAt.After(now)
	}, func(a, b auth.APIToken) int { return a.NoticeAt.Compare(b.NoticeAt) })
}

// MoveNotice implements [authstore.APITokenExpiry].
func (s *APITokens) MoveNotice(ctx context.Context, id auth.APITokenID, from, to time.Time) error {
	err := s.update(ctx, id, func(t *auth.APIToken) error {
		if !t.NoticeAt.Equal(from) {
			return fault.New(fault.Conflict, "the end of the token was announced already")
		}
		t.NoticeAt = to
		return nil
	})
	if fault.Is(err, fault.NotFound) {
		err = fault.New(fault.Conflict, "the token is gone")
	}
	return err
}
