package inprocess

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	authaccess "github.com/tollgate-dev/tollgate/core/auth/access"
	"github.com/tollgate-dev/tollgate/core/auth/assessment"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/service"
	"github.com/tollgate-dev/tollgate/core/trustlevel"
	"github.com/tollgate-dev/tollgate/ports/accessstore"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/servicestore"
)

// MemberPorts are the dependencies of Members. All fields are required.
type MemberPorts struct {
	Accounts authstore.Accounts
	Sessions authstore.Sessions
	Audit    authstore.AuditLog
	Services servicestore.Services
	Grants   registrystore.Grants
	Linked   authstore.Identities
	Groups   *authaccess.Memberships
	Clock    clock.Clock
	Changes  authstore.Changes
}

// Members finds people and service accounts for decisions about calls. It implements
// accessstore.Members.
type Members struct {
	ports  MemberPorts
	recent authaccess.Recent[string, access.Subject] // by holder
}

// NewMembers returns the people and service accounts.
func NewMembers(p MemberPorts) accessstore.Members {
	return &Members{p, authaccess.Recent[string, access.Subject]{Changes: p.Changes}}
}

// Find implements [accessstore.Members].
func (m *Members) Find(ctx context.Context, holder string) (access.Subject, error) {
	return m.recent.Of(holder, m.ports.Clock.Now(), func() (access.Subject, error) {
		member, err := m.find(ctx, registry.Holder(holder))
		return access.NewSubject(member), err
	})
}

// find reads a person or a service account with its grants.
func (m *Members) find(ctx context.Context, holder registry.Holder) (access.Member, error) {
	if name, ok := holder.Service(); ok {
		a, err := m.ports.Services.Get(ctx, service.Name(name))
		if err == nil && a.State != service.Active {
			err = errNotActive()
		}
		if err != nil {
			return access.Member{}, err
		}
		return m.withGrants(ctx, access.Member{Kind: access.Service, ID: name}, holder)
	}
	a, err := m.ports.Accounts.Get(ctx, auth.UserID(holder))
	if err == nil && a.State != auth.AccountActive {
		err = errNotActive()
	}
	if err != nil {
		return access.Member{}, err
	}
	member := access.Member{Kind: access.Person, ID: string(a.Email)}
	groups, err := m.ports.Groups.GroupsOf(ctx, a.ID)
	if err != nil {
		return access.Member{}, err
	}
	for _, g := range groups {
		member.Groups = append(member.Groups, access.Group{Provider: string(g.Provider), Name: g.Name})
	}
	return m.withGrants(ctx, member, holder)
}

func errNotActive() error { return fault.New(fault.NotFound, "there is no active account") }

func (m *Members) withGrants(ctx context.Context, member access.Member, of registry.Holder) (access.Member, error) {
	grants, err := m.ports.Grants.Of(ctx, of)
	for _, g := range grants {
		member.Grants = append(member.Grants, access.Grant{Action: g.Action, Pattern: g.Pattern})
	}
	return member, err
}

// FindNamed implements [accessstore.Members].
func (m *Members) FindNamed(ctx context.Context, who access.Selector) (access.Subject, error) {
	holder, level := registry.ServiceHolder(who.Value), trustlevel.FullTrust
	if who.Kind == access.SelectPerson {
		a, err := m.ports.Accounts.ByEmail(ctx, auth.Email(who.Value))
		if err != nil {
			return access.Subject{}, err
		}
		holder = registry.Holder(a.ID)
		newest, err := m.newestSession(ctx, a.ID)
		if err != nil {
			return access.Subject{}, err
		}
		if level = trustlevel.Unverified; newest != nil {
			level = newest.TrustLevel
		}
	}
	member, err := m.find(ctx, holder)
	member.Trust = level
	return access.NewSubject(member), err
}

// FindLinked implements [accessstore.Members].
func (m *Members) FindLinked(ctx context.Context, issuer, subject string) (access.Subject, error) {
	linked, err := m.ports.Linked.Find(ctx, issuer, subject)
	switch {
	case err != nil:
		return access.Subject{}, err
	case linked.ConfirmedAt.IsZero(): // the provider has refused the person
		return access.Refused(), nil
	}
	member, err := m.find(ctx, registry.Holder(linked.UserID))
	if fault.Is(err, fault.NotFound) {
		return access.Refused(), nil
	}
	return access.NewSubject(member), err
}

// newestSession returns the newest active session of a person; nil without one.
func (m *Members) newestSession(ctx context.Context, user auth.UserID) (*auth.Session, error) {
	sessions, _, err := m.ports.Sessions.Active(ctx, user, m.ports.Clock.Now(), auth.PageRequest{Limit: 1})
	if err != nil || len(sessions) == 0 {
		return nil, err
	}
	return &sessions[0], nil
}

// evaluations is how many of the last evaluations of a person are searched for that of a session.
const evaluations = 50

// Reasons implements [accessstore.Members].
func (m *Members) Reasons(ctx context.Context, who access.Selector) ([]string, error) {
	if who.Kind != access.SelectPerson {
		return []string{"Tokens of service accounts count as FULL_TRUST."}, nil
	}
	a, err := m.ports.Accounts.ByEmail(ctx, auth.Email(who.Value))
	if err != nil {
		return nil, err
	}
	newest, err := m.newestSession(ctx, a.ID)
	if err != nil {
		return nil, err
	}
	if newest == nil {
		return []string{"The person has no active session. Personal tokens count as FULL_TRUST."}, nil
	}
	events, _, err := m.ports.Audit.Search(ctx, authstore.AuditQuery{
		Subject: audit.Subject(a.ID), Category: audit.RiskEvaluation, Limit: evaluations, Uncounted: true,
	})
	var found *assessment.Evaluation
	for i := range events {
		if e := assessment.ReadEvaluation(&events[i]); e.Session == newest.ID {
			found = &e
			break
		}
	}
	return found.Explain(newest), err
}
