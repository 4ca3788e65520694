package inprocess

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/access"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

var _ authority.Memberships = (*Memberships)(nil)

// Memberships says as whom operators know the people who call. It is safe for concurrent use.
type Memberships struct{ people *access.Memberships }

// NewMemberships returns Memberships.
func NewMemberships(m *access.Memberships) *Memberships { return &Memberships{m} }

// MembershipOf implements [authority.Memberships].
func (m *Memberships) MembershipOf(ctx context.Context, who registry.Holder) (authority.Membership, error) {
	if _, ok := who.Service(); ok || who == "" {
		return authority.Membership{}, fault.New(fault.NotFound, "a service account is no person")
	}
	found, err := m.people.Of(ctx, auth.UserID(who))
	return authority.Membership{Email: string(found.Email), Groups: found.Groups}, err
}
