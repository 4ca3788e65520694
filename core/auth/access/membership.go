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
	Changes    authstore.Changes
}

// Memberships returns who people are to those who name them by address or group. It keeps that for
// less than a second. It is safe for concurrent use.
type Memberships struct {
	ports  MembershipPorts
	recent Recent[auth.UserID, Membership]
}

// NewMemberships returns Memberships.
func NewMemberships(p MembershipPorts) *Memberships {
	return &Memberships{p, Recent[auth.UserID, Membership]{Changes: p.Changes}}
}

// Membership is by what a person is named.
type Membership struct {
	Email  auth.Email
	Groups []string // PROVIDER/GROUP
}

// Of returns the membership of a person as it was at most sessioncache.MaxAge ago. The groups are
// those of all linked identities, however the person has signed in. It returns fault.NotFound.
func (m *Memberships) Of(ctx context.Context, user auth.UserID) (Membership, error) {
	return m.recent.Of(user, m.ports.Clock.Now(), func() (found Membership, err error) {
		account, err := m.ports.Accounts.Get(ctx, user)
		if err != nil {
			return found, err
		}
		found.Email = account.Email
		linked, err := m.GroupsOf(ctx, user)
		for _, g := range linked {
			found.Groups = append(found.Groups, g.Provider.Group(g.Name))
		}
		return found, err
	})
}

// Group is a group of a person at a provider.
type Group struct {
	Provider company.Name
	Name     string
}

// GroupsOf returns the groups of all linked identities of a person as they are stored now.
func (m *Memberships) GroupsOf(ctx context.Context, user auth.UserID) (groups []Group, err error) {
	linked, err := m.ports.Identities.Of(ctx, user)
	if err != nil || len(linked) == 0 {
		return nil, err
	}
	all, err := m.ports.Providers.List(ctx)
	if err != nil {
		return nil, err
	}
	for i := range linked {
		p, names := linked[i].GroupsAt(all)
		for _, name := range names {
			groups = append(groups, Group{p.Name, name})
		}
	}
	return groups, nil
}
