package inprocess

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/access"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

type memberships struct{ people *access.Memberships }

// NewMemberships returns as whom operators know the people who call.
func NewMemberships(m *access.Memberships) authority.Memberships { return &memberships{m} }

// MembershipOf implements [authority.Memberships].
func (m *memberships) MembershipOf(ctx context.Context, who registry.Holder) (authority.Membership, error) {
	if _, ok := who.Service(); ok || who == "" {
		return authority.Membership{}, fault.New(fault.NotFound, "a service account is no person")
	}
	found, err := m.people.Of(ctx, auth.UserID(who))
	return authority.Membership{Email: string(found.Email), Groups: found.Groups}, err
}
