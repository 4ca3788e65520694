package inprocess

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

var _ authority.Acts = (*Acts)(nil)

// Acts writes what callers do to the registry to the audit log. It is safe for concurrent use.
type Acts struct{ trail *auditing.Trail }

// NewActs returns Acts that writes to t.
func NewActs(t *auditing.Trail) *Acts { return &Acts{t} }

// Record implements [authority.Acts].
func (a *Acts) Record(ctx context.Context, act authority.Act) error {
	return a.trail.RecordChanges(ctx, act.Change())
}
