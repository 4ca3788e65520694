package authority

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/registry"
)

// Memberships says as whom operators know the people who call. It is safe for concurrent use.
type Memberships interface {
	// MembershipOf returns the membership of a person, from a copy that is at most a second old. It
	// returns fault.NotFound for who is no person, and fault.Unavailable when the database is not
	// available.
	MembershipOf(ctx context.Context, who registry.Holder) (Membership, error)
}

// Membership is by what operators name a person.
type Membership struct {
	Email  string
	Groups []string // PROVIDER/GROUP, of the identities of company sign-in that are linked
}
