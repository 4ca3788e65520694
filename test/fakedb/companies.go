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
type Providers struct {
	*table[company.Name, company.Provider]
}

// NewProviders returns the providers of a database.
func NewProviders(db *Database) *Providers { return &Providers{db.providers} }

// List implements [authstore.Providers].
func (s *Providers) List(ctx context.Context) ([]company.Provider, error) {
	return s.list(ctx, all, func(a, b company.Provider) int { return cmp.Compare(a.Name, b.Name) })
}

// Save implements [authstore.Providers].
func (s *Providers) Save(ctx context.Context, p company.Provider) error {
	return s.db.run(ctx, func(ctx context.Context) error {
		for _, other := range s.rows {
			for _, d := range p.Domains {
				if other.Name != p.Name && slices.Contains(other.Domains, d) {
					return fault.Newf(fault.Conflict, "domains: %s belongs to another provider", d)
				}
			}
		}
		if before, ok := s.rows[p.Name]; ok {
			p.CreatedAt, p.Condition = before.CreatedAt, before.Condition
		} else {
			p.Condition = company.Condition{}
		}
		return s.put(ctx, p)
	})
}

// Note implements [authstore.Providers].
func (s *Providers) Note(ctx context.Context, name company.Name, c company.Condition) error {
	return ignoreNotFound(s.update(ctx, name, func(p *company.Provider) error {
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
type Identities struct {
	*table[company.IdentityID, company.Identity]
}

// NewIdentities returns the identities of a database.
func NewIdentities(db *Database) *Identities { return &Identities{db.identities} }

// Find implements [authstore.Identities].
func (s *Identities) Find(ctx context.Context, issuer, subject string) (company.Identity, error) {
	return s.one(ctx, func(i company.Identity) bool { return i.Issuer == issuer && i.Subject == subject }, byLinkTime)
}

func byLinkTime(a, b company.Identity) int {
	return cmp.Or(a.LinkedAt.Compare(b.LinkedAt), cmp.Compare(a.ID, b.ID))
}

// Of implements [authstore.Identities].
func (s *Identities) Of(ctx context.Context, user auth.UserID) ([]company.Identity, error) {
	return s.list(ctx, func(i company.Identity) bool { return i.UserID == user }, byLinkTime)
}

// Use implements [authstore.Identities].
func (s *Identities) Use(ctx context.Context, id company.IdentityID, email auth.Email, m company.Membership, at time.Time) error {
	return ignoreNotFound(s.update(ctx, id, func(i *company.Identity) error {
		i.Email, i.Membership, i.LastUsedAt, i.ConfirmedAt = email, m, at, at
		return nil
	}))
}

// Confirm implements [authstore.Identities].
func (s *Identities) Confirm(ctx context.Context, id company.IdentityID, at time.Time, m *company.Membership) error {
	return ignoreNotFound(s.update(ctx, id, func(i *company.Identity) error {
		if i.ConfirmedAt = at; m != nil {
			i.Membership = *m
		}
		return nil
	}))
}

// Remove implements [authstore.Identities].
func (s *Identities) Remove(ctx context.Context, user auth.UserID, id company.IdentityID) error {
	return s.db.run(ctx, func(ctx context.Context) error {
		if s.rows[id].UserID != user {
			return s.errNotFound()
		}
		_, err := s.db.logins.removeAll(ctx, func(l company.Login) bool { return l.IdentityID == id })
		return cmp.Or(err, s.remove(ctx, id))
	})
}

// Logins implements [authstore.Logins].
type Logins struct {
	*table[company.LoginID, company.Login]
}

// NewLogins returns the logins of a database.
func NewLogins(db *Database) *Logins { return &Logins{db.logins} }

// Bind implements [authstore.Logins].
func (s *Logins) Bind(ctx context.Context, id company.LoginID, session auth.SessionID) error {
	return s.update(ctx, id, func(l *company.Login) error {
		if l.SessionID != "" {
			return s.errNotFound()
		}
		l.SessionID = session
		return nil
	})
}

// Find implements [authstore.Logins].
func (s *Logins) Find(ctx context.Context, q authstore.LoginQuery) ([]company.Login, error) {
	q.At, q.Due = storedTime(q.At), storedTime(q.Due)
	found, err := s.list(ctx, func(l company.Login) bool {
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
	return s.update(ctx, l.ID, func(stored *company.Login) error {
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
	return s.removeAll(ctx, func(l company.Login) bool { return l.SessionID == "" && l.AnsweredAt.Before(before) })
}
