package fakedb

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
)

// Providers implements [authstore.Providers].
type Providers struct{ db *Database }

// NewProviders returns the providers of a database.
func NewProviders(db *Database) *Providers { return &Providers{db} }

// List implements [authstore.Providers].
func (s *Providers) List(ctx context.Context) ([]company.Provider, error) {
	return s.db.providers.list(ctx, all, func(a, b company.Provider) int { return cmp.Compare(a.Name, b.Name) })
}

// Save implements [authstore.Providers].
func (s *Providers) Save(ctx context.Context, p company.Provider) error {
	return s.db.run(ctx, func(ctx context.Context) error {
		for _, other := range s.db.providers.rows {
			for _, d := range p.Domains {
				if other.Name != p.Name && slices.Contains(other.Domains, d) {
					return fault.Newf(fault.Conflict, "domains: %s belongs to another provider", d)
				}
			}
		}
		if before, ok := s.db.providers.rows[p.Name]; ok {
			p.CreatedAt, p.Condition = before.CreatedAt, before.Condition
		} else {
			p.Condition = company.Condition{}
		}
		return s.db.providers.put(ctx, p)
	})
}

// Remove implements [authstore.Providers].
func (s *Providers) Remove(ctx context.Context, name company.Name) error {
	return s.db.providers.remove(ctx, name)
}

// Note implements [authstore.Providers].
func (s *Providers) Note(ctx context.Context, name company.Name, c company.Condition) error {
	return ignoreNotFound(s.db.providers.update(ctx, name, func(p *company.Provider) error {
		p.Condition = c
		return nil
	}))
}

func ignoreNotFound(err error) error {
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}

// Identities implements [authstore.Identities].
type Identities struct{ db *Database }

// NewIdentities returns the identities of a database.
func NewIdentities(db *Database) *Identities { return &Identities{db} }

// Add implements [authstore.Identities].
func (s *Identities) Add(ctx context.Context, i company.Identity) error {
	return s.db.run(ctx, func(ctx context.Context) error {
		return cmp.Or(s.db.accounts.refer(i.UserID), s.db.identities.insert(ctx, i))
	})
}

// Find implements [authstore.Identities].
func (s *Identities) Find(ctx context.Context, issuer, subject string) (company.Identity, error) {
	return result(ctx, s.db, func(ctx context.Context) (company.Identity, error) {
		found, err := s.db.identities.list(ctx, func(i company.Identity) bool {
			return i.Issuer == issuer && i.Subject == subject
		}, byLinkTime)
		if err != nil || len(found) == 0 {
			return company.Identity{}, cmp.Or(err, s.db.identities.errNotFound())
		}
		return found[0], nil
	})
}

func byLinkTime(a, b company.Identity) int {
	return cmp.Or(a.LinkedAt.Compare(b.LinkedAt), cmp.Compare(a.ID, b.ID))
}

// Of implements [authstore.Identities].
func (s *Identities) Of(ctx context.Context, user auth.UserID) ([]company.Identity, error) {
	return s.db.identities.list(ctx, func(i company.Identity) bool { return i.UserID == user }, byLinkTime)
}

// Use implements [authstore.Identities].
func (s *Identities) Use(ctx context.Context, id company.IdentityID, email auth.Email, m company.Membership, at time.Time) error {
	return ignoreNotFound(s.db.identities.update(ctx, id, func(i *company.Identity) error {
		i.Email, i.Membership, i.LastUsedAt, i.ConfirmedAt = email, m, at, at
		return nil
	}))
}

// Confirm implements [authstore.Identities].
func (s *Identities) Confirm(ctx context.Context, id company.IdentityID, at time.Time, m *company.Membership) error {
	return ignoreNotFound(s.db.identities.update(ctx, id, func(i *company.Identity) error {
		if i.ConfirmedAt = at; m != nil {
			i.Membership = *m
		}
		return nil
	}))
}

// Remove implements [authstore.Identities].
func (s *Identities) Remove(ctx context.Context, user auth.UserID, id company.IdentityID) error {
	return s.db.run(ctx, func(ctx context.Context) error {
		if s.db.identities.rows[id].UserID != user {
			return s.db.identities.errNotFound()
		}
		_, err := s.db.logins.removeAll(ctx, func(l company.Login) bool { return l.IdentityID == id })
		return cmp.Or(err, s.db.identities.remove(ctx, id))
	})
}

// Logins implements [authstore.Logins].
type Logins struct{ db *Database }

// NewLogins returns the logins of a database.
func NewLogins(db *Database) *Logins { return &Logins{db} }

// Add implements [authstore.Logins].
func (s *Logins) Add(ctx context.Context, l company.Login) error {
	return s.db.run(ctx, func(ctx context.Context) error {
		return cmp.Or(s.db.identities.refer(l.IdentityID), s.db.logins.insert(ctx, l))
	})
}

// Bind implements [authstore.Logins].
func (s *Logins) Bind(ctx context.Context, id company.LoginID, session auth.SessionID) error {
	return s.db.logins.update(ctx, id, func(l *company.Login) error {
		if l.SessionID != "" {
			return s.db.logins.errNotFound()
		}
		l.SessionID = session
		return nil
	})
}

// Find implements [authstore.Logins].
func (s *Logins) Find(ctx context.Context, q authstore.LoginQuery) ([]company.Login, error) {
	q.At, q.Due = storedTime(q.At), storedTime(q.Due)
	found, err := s.db.logins.list(ctx, func(l company.Login) bool {
		session, ok := s.db.sessions.rows[l.SessionID]
		return ok && session.Active(q.At) && (q.Provider == "" || l.Provider == q.Provider) &&
			!slices.Contains(q.Without, l.Provider) && (q.Identity == "" || l.IdentityID == q.Identity) && (q.Session == "" || l.SessionID == q.Session) &&
			(q.SID == "" || l.SID == q.SID) && (q.Due.IsZero() || !l.RecheckAt.IsZero() && !l.RecheckAt.After(q.Due))
	}, func(a, b company.Login) int { return cmp.Or(a.RecheckAt.Compare(b.RecheckAt), cmp.Compare(a.ID, b.ID)) })
	if q.Limit > 0 {
		found = first(found, q.Limit)
	}
	return found, err
}

// Renew implements [authstore.Logins].
func (s *Logins) Renew(ctx context.Context, l company.Login, from time.Time) error {
	from = storedTime(from)
	return s.db.logins.update(ctx, l.ID, func(stored *company.Login) error {
		if !stored.RecheckAt.Equal(from) {
			return fault.New(fault.Conflict, "the login was checked by another instance")
		}
		stored.Refresh, stored.AnsweredAt, stored.RecheckAt = l.Refresh, l.AnsweredAt, l.RecheckAt
		return nil
	})
}

// DeleteAbandoned implements [authstore.Logins].
func (s *Logins) DeleteAbandoned(ctx context.Context, before time.Time) (int, error) {
	before = storedTime(before)
	return s.db.logins.removeAll(ctx, func(l company.Login) bool { return l.SessionID == "" && l.AnsweredAt.Before(before) })
}
