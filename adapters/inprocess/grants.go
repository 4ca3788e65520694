package inprocess

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/audit"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

// Grants records changes of grants in the audit log: authority.Grants. Their events name the holder
// in the details and belong to no person, since a person's own log is about signing in and writing.
// It is safe for concurrent use.
type Grants struct{ trail *audit.Trail }

var _ authority.Grants = (*Grants)(nil)

// NewGrants returns what writes to a trail.
func NewGrants(t *audit.Trail) *Grants { return &Grants{t} }

// RecordGrant answers authority.Grants.
func (g *Grants) RecordGrant(ctx context.Context, c authority.GrantChange) error {
	action := "grant_remove"
	if c.Given {
		action = "grant_add"
	}
	return g.trail.Record(ctx, audit.Entry{
		Type: auth.AccountChange, Success: true,
		Details: map[string]any{
			"action": action, "userId": c.Holder, "grant": c.Action, "resource": c.Resource, audit.Actor: audit.Operator,
		},
	})
}
