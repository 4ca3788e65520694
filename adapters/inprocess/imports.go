package inprocess

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/audit"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

// Imports tells the audit log of imports: authority.Imports. They are changes of the registry by an operator, and concern no
// person. It is safe for concurrent use.
type Imports struct{ trail *audit.Trail }

var _ authority.Imports = (*Imports)(nil)

// NewImports returns what writes to a trail.
func NewImports(t *audit.Trail) *Imports { return &Imports{t} }

// RecordImport answers authority.Imports.
func (i *Imports) RecordImport(ctx context.Context, versions ...authority.ImportedVersion) error {
	entries := make([]audit.Entry, len(versions))
	for n, v := range versions {
		entries[n] = audit.Entry{Type: auth.RegistryChange, Success: true, Details: map[string]any{
			"action": "import", "serverName": v.ServerName, "version": v.Version, audit.Actor: audit.Operator,
		}}
	}
	return i.trail.Record(ctx, entries...)
}
