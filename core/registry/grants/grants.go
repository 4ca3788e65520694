// Package grants holds the use cases of operators for grants: who may change which servers. Every
// change is recorded in the audit log. Package publish enforces the grants.
package grants

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// Ports are the dependencies of an Operator. All fields are required.
type Ports struct {
	Transactions transaction.Runner
	Grants       registrystore.Grants
	Recorder     authority.Recorder
}

// Operator gives and removes grants. The API does not expose it; everyone who may run the operator
// commands may use it. It is safe for concurrent use.
type Operator struct{ ports Ports }

// New returns an operator.
func New(p Ports) *Operator { return &Operator{p} }

// Add adds a grant, which applies from the next request on. An existing grant stays as it is,
// without an audit event; the store decides which of two concurrent calls adds it. It returns
// fault.Unavailable when the database fails.
func (o *Operator) Add(ctx context.Context, g registry.Grant) error {
	held := false
	err := o.ports.Transactions.Atomically(ctx, func(ctx context.Context) error {
		err := o.ports.Grants.Add(ctx, g)
		if held = fault.Is(err, fault.Conflict); err != nil {
			return err
		}
		return o.ports.Recorder.RecordChanges(ctx, newChange(g, true))
	})
	if held {
		return nil
	}
	return err
}

// Remove removes a grant, from the next request on. It returns fault.NotFound when the holder
// does not have the grant, fault.Unavailable when the database fails.
func (o *Operator) Remove(ctx context.Context, g registry.Grant) error {
	return o.ports.Transactions.Atomically(ctx, func(ctx context.Context) error {
		if err := o.ports.Grants.Remove(ctx, g); err != nil {
			return err
		}
		return o.ports.Recorder.RecordChanges(ctx, newChange(g, false))
	})
}

// newChange returns the change of a grant for the audit log.
func newChange(g registry.Grant, given bool) authority.GrantChange {
	return authority.GrantChange{Holder: string(g.Holder), Given: given, Action: string(g.Action), Resource: g.Pattern.String()}
}
