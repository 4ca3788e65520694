package inprocess

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/audit"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

// Methods tells the audit log of changes of the methods listing:
// authority.Methods. They are an operator's, and concern no person. It is safe
// for concurrent use.
type Methods struct{ trail *audit.Trail }

var _ authority.Methods = (*Methods)(nil)

// NewMethods returns what writes to a trail.
func NewMethods(t *audit.Trail) *Methods { return &Methods{t} }

// RecordMethods answers authority.Methods.
func (m *Methods) RecordMethods(ctx context.Context, changes ...authority.MethodChange) error {
	entries := make([]audit.Entry, len(changes))
	for i, c := range changes {
		entries[i] = audit.Entry{Type: auth.MethodsChange, Success: true, Details: map[string]any{
			"action": c.Action, "methodId": c.ID, "path": c.Path, "service": c.Service, audit.Actor: audit.Operator,
		}}
	}
	return m.trail.Record(ctx, entries...)
}
