package fakedb

import (
	"cmp"
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authorization"
)

// familyRow keeps an empty list of groups and a missing one apart.
type familyRow struct {
	Family    oauth.Family
	HasGroups bool
}

// consentKey identifies a consent.
type consentKey struct {
	user           auth.UserID
	client         oauth.ClientID
	host, resource string
}

// addAuthorizationTables adds the tables of the authorization server.
func (d *Database) addAuthorizationTables() {
	d.requests = newTable(d, "request", func(r oauth.Request) auth.TokenHash { return r.ID })
	d.requests.expires = func(r oauth.Request) time.Time { return r.ExpiresAt }
	d.families = newTable(d, "family", func(r familyRow) oauth.FamilyID { return r.Family.ID })
	d.families.refers = func(r familyRow) error {
		if r.Family.SessionID == "" {
			return d.accounts.refer(r.Family.UserID)
		}
		return cmp.Or(d.accounts.refer(r.Family.UserID), d.sessions.refer(r.Family.SessionID))
	}
	d.secrets = newTable(d, "secret", func(s oauth.Secret) auth.TokenHash { return s.Hash })
	d.secrets.refers = func(s oauth.Secret) error { return d.families.refer(s.Family) }
	d.consents = newTable(d, "consent", func(c oauth.Consent) consentKey {
		return consentKey{c.UserID, c.Client, c.Host, c.Resource}
	})
	d.consents.expires = func(c oauth.Consent) time.Time { return c.ExpiresAt }
	d.sightings = newTable(d, "sighting", func(s oauth.Sighting) oauth.ClientID { return s.URL })
}

// Requests implements [authorization.Requests].
type Requests struct {
	*table[auth.TokenHash, oauth.Request]
}

// NewRequests returns the authorization requests of a database.
func NewRequests(db *Database) *Requests { return &Requests{db.requests} }

// Families implements [authorization.Families].
type Families struct {
	rows *table[oauth.FamilyID, familyRow]
}

// NewFamilies returns the families of tokens of a database.
func NewFamilies(db *Database) *Families { return &Families{db.families} }

func newFamilyRow(f oauth.Family) familyRow { return familyRow{f, f.Groups != nil} }

func (r familyRow) toFamily() oauth.Family {
	if r.HasGroups && r.Family.Groups == nil {
		r.Family.Groups = []string{}
	}
	return r.Family
}

// Add implements [authorization.Families].
func (s *Families) Add(ctx context.Context, f oauth.Family) error {
	return s.rows.db.run(ctx, func(ctx context.Context) error {
		if !s.rows.db.accounts.has(f.UserID) {
			return s.rows.db.accounts.errNotFound()
		}
		others, err := s.rows.list(ctx, func(r familyRow) bool {
			session := s.rows.db.sessions.rows[r.Family.SessionID]
			return r.Family.UserID == f.UserID && r.Family.Client == f.Client && r.Family.Active(storedTime(f.CreatedAt)) &&
				(r.Family.SessionID == "" || session.Active(storedTime(f.CreatedAt)))
		}, usedFamily)
		for _, r := range others[len(first(others, oauth.MaxFamilies-1)):] {
			r.Family.EndedAt, r.Family.EndReason = f.CreatedAt, oauth.EndTooMany
			err = cmp.Or(err, s.rows.put(ctx, r))
		}
		return cmp.Or(err, s.rows.insert(ctx, newFamilyRow(f)))
	})
}

// usedFamily is the order in which families stay when there are too many.
func usedFamily(a, b familyRow) int {
	if unused := a.Family.UsedAt.IsZero(); unused != b.Family.UsedAt.IsZero() {
		if unused {
			return 1
		}
		return -1
	}
	return newestFamily(a, b)
}

func newestFamily(a, b familyRow) int {
	return cmp.Or(b.Family.CreatedAt.Compare(a.Family.CreatedAt), cmp.Compare(b.Family.ID, a.Family.ID))
}

// Get implements [authorization.Families].
func (s *Families) Get(ctx context.Context, id oauth.FamilyID) (oauth.Family, error) {
	r, err := s.rows.find(ctx, id)
	return r.toFamily(), err
}

// Update implements [authorization.Families].
func (s *Families) Update(ctx context.Context, id oauth.FamilyID, change func(*oauth.Family) error) error {
	return s.rows.update(ctx, id, func(r *familyRow) error {
		f := r.toFamily()
		err := change(&f)
		f.ID, f.UserID, f.SessionID, f.CreatedAt = id, r.Family.UserID, r.Family.SessionID, r.Family.CreatedAt
		*r = newFamilyRow(f)
		return err
	})
}

// Active implements [authorization.Families].
func (s *Families) Active(
	ctx context.Context, user auth.UserID, at time.Time, limit int,
) (list []oauth.Family, err error) {
	found, err := s.rows.listFirst(ctx, limit, func(r familyRow) bool {
		session := s.rows.db.sessions.rows[r.Family.SessionID]
		return r.Family.UserID == user && r.Family.Active(at) && !r.Family.UsedAt.IsZero() &&
			(r.Family.SessionID == "" || session.Active(at))
	}, newestFamily)
	for _, r := range found {
		list = append(list, r.toFamily())
	}
	return list, err
}

// End implements [authorization.Families].
func (s *Families) End(
	ctx context.Context, which authorization.FamilyFilter, at time.Time, reason string,
) (int, error) {
	if which == (authorization.FamilyFilter{}) {
		return 0, fault.New(fault.Internal, "the filter of families is empty")
	}
	ended, err := s.rows.changeAll(ctx, func(r familyRow) bool {
		f := &r.Family
		return f.Active(at) && (which.UserID == "" || which.UserID == f.UserID) &&
			(which.Client == "" || which.Client == f.Client) && (which.Resource == "" || which.Resource == f.Resource) &&
			(which.Provider == "" || which.Provider == f.Provider) &&
			(which.Subject == "" || which.Subject == f.Subject)
	}, newestFamily, func(r *familyRow) { r.Family.EndedAt, r.Family.EndReason = at, reason })
	return len(ended), err
}

// DeleteExpired implements [authorization.Families].
func (s *Families) DeleteExpired(ctx context.Context, before time.Time) (int, error) {
	before = storedTime(before)
	return s.rows.db.removeFamilies(ctx, func(f *oauth.Family) bool {
		return f.ExpiresAt.Before(before) || !f.EndedAt.IsZero() && f.EndedAt.Before(before)
	})
}

// removeFamilies deletes the families that match, with their secrets.
func (d *Database) removeFamilies(ctx context.Context, matches func(f *oauth.Family) bool) (int, error) {
	return result(ctx, d, func(ctx context.Context) (int, error) {
		n, err := d.families.removeAll(ctx, func(r familyRow) bool { return matches(&r.Family) })
		_, secrets := d.secrets.removeAll(ctx, func(s oauth.Secret) bool { return !d.families.has(s.Family) })
		return n, cmp.Or(err, secrets)
	})
}

// Secrets implements [authorization.Secrets].
type Secrets struct {
	*table[auth.TokenHash, oauth.Secret]
}

// NewSecrets returns the codes and refresh tokens of families of a database.
func NewSecrets(db *Database) *Secrets { return &Secrets{db.secrets} }

// Spend implements [authorization.Secrets].
func (s *Secrets) Spend(ctx context.Context, hash auth.TokenHash, at time.Time) error {
	return s.update(ctx, hash, func(secret *oauth.Secret) error {
		if !secret.SpentAt.IsZero() {
			return fault.New(fault.Conflict, "the secret was already spent")
		}
		secret.SpentAt = at
		return nil
	})
}

// Consents implements [authorization.Consents].
type Consents struct {
	*table[consentKey, oauth.Consent]
}

// NewConsents returns the consents of a database.
func NewConsents(db *Database) *Consents { return &Consents{db.consents} }

// Put implements [authorization.Consents].
func (s *Consents) Put(ctx context.Context, c oauth.Consent) error {
	return s.db.run(ctx, func(ctx context.Context) error {
		return cmp.Or(s.db.accounts.refer(c.UserID), s.put(ctx, c))
	})
}

// Find implements [authorization.Consents].
func (s *Consents) Find(
	ctx context.Context, user auth.UserID, client oauth.ClientID, host, resource string,
) (oauth.Consent, error) {
	return s.find(ctx, consentKey{user, client, host, resource})
}

// Remove implements [authorization.Consents].
func (s *Consents) Remove(ctx context.Context, which authorization.FamilyFilter) error {
	if which == (authorization.FamilyFilter{}) {
		return fault.New(fault.Internal, "the filter of consents is empty")
	}
	_, err := s.removeAll(ctx, func(c oauth.Consent) bool {
		return (which.UserID == "" || which.UserID == c.UserID) && (which.Client == "" || which.Client == c.Client) &&
			(which.Resource == "" || which.Resource == c.Resource)
	})
	return err
}

// Sightings implements [authorization.Sightings].
type Sightings struct {
	*table[oauth.ClientID, oauth.Sighting]
}

// NewSightings returns the sightings of documents of a database.
func NewSightings(db *Database) *Sightings { return &Sightings{db.sightings} }

// Note implements [authorization.Sightings].
func (s *Sightings) Note(ctx context.Context, sighting oauth.Sighting) error {
	return s.db.run(ctx, func(ctx context.Context) error {
		err := s.put(ctx, sighting)
		seen, listed := s.list(ctx, all, newestSighting)
		for _, old := range seen[len(first(seen, oauth.MaxSightings)):] {
			err = cmp.Or(err, s.remove(ctx, old.URL))
		}
		return cmp.Or(err, listed)
	})
}

func newestSighting(a, b oauth.Sighting) int {
	return cmp.Or(b.At.Compare(a.At), cmp.Compare(b.URL, a.URL))
}

// List implements [authorization.Sightings].
func (s *Sightings) List(ctx context.Context, limit int) ([]oauth.Sighting, error) {
	return s.listFirst(ctx, limit, all, newestSighting)
}

var (
	_ authorization.Requests  = (*Requests)(nil)
	_ authorization.Families  = (*Families)(nil)
	_ authorization.Secrets   = (*Secrets)(nil)
	_ authorization.Consents  = (*Consents)(nil)
	_ authorization.Sightings = (*Sightings)(nil)
)
