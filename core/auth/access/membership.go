package access

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock"
)

// MembershipPorts are the dependencies of Memberships. All fields are required.
type MembershipPorts struct {
	Accounts   authstore.Accounts
	Identities authstore.Identities
	Providers  authstore.Providers
	Clock      clock.Clock
}

// Memberships returns who people are to those who name them by address or group. It keeps that for
// less than a second. It is safe for concurrent use.
type Memberships struct {
	ports  MembershipPorts
	recent Recent[auth.UserID, Membership]
}

// NewMemberships returns Memberships.
func NewMemberships(p MembershipPorts) *Memberships { return &Memberships{ports: p} }

// Membership is by what a person is named.
type Membership struct {
	Email  auth.Email
	Groups []string // PROVIDER/GROUP
}

// Of returns the membership of a person as it was at most sessioncache.MaxAge ago. The groups are
// those of all linked identities, however the person has signed in. It returns fault.NotFound.
func (m *Memberships) Of(ctx context.Context, user auth.UserID) (Membership, error) {
	now := m.ports.Clock.Now()
	if known, ok := m.recent.Get(user, now); ok {
		return known, nil
	}
	account, err := m.ports.Accounts.Get(ctx, user)
	if err != nil {
		return Membership{}, err
	}
	found := Membership{Email: account.Email}
	linked, err := m.ports.Identities.Of(ctx, user)
	if err == nil && len(linked) > 0 {
		err = m.addGroups(ctx, &found, linked)
	}
	if err != nil {
		return Membership{}, err
	}
	m.recent.Put(user, found, now)
	return found, nil
}

// addGroups adds the groups of identities.
func (m *Memberships) addGroups(ctx context.Context, to *Membership, linked []company.Identity) error {
	all, err := m.ports.Providers.List(ctx)
	if err != nil {
		return err
	}
	for i := range linked {
		p, groups := linked[i].GroupsAt(all)
		for _, g := range groups {
			to.Groups = append(to.Groups, p.Name.Group(g))
		}
	}
	return nil
}
