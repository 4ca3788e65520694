package delegating

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// GrantPorts are the dependencies of an Operator. All fields are required.
type GrantPorts struct {
	Transactions transaction.Runner
	Grants       registrystore.Grants
	Recorder     authority.Recorder
}

// GrantOperator gives and removes grants. The API does not expose it; everyone who may run the
// operator commands may use it. It is safe for concurrent use.
type GrantOperator struct{ ports GrantPorts }

// NewGrantOperator returns an operator.
func NewGrantOperator(p GrantPorts) *GrantOperator { return &GrantOperator{p} }

// Add adds a grant, which applies from the next request on. An existing grant stays as it is,
// without an audit event; the store decides which of two concurrent calls adds it. It returns
// fault.Unavailable when the database fails.
func (o *GrantOperator) Add(ctx context.Context, g registry.Grant) error {
	held := false
	err := o.ports.Transactions.Atomically(ctx, func(ctx context.Context) error {
		err := o.ports.Grants.Add(ctx, g)
		if held = fault.Is(err, fault.Conflict); err != nil {
			return err
		}
		return o.ports.Recorder.RecordChanges(ctx, newGrantChange("grant_add", g))
	})
	if held {
		return nil
	}
	return err
}

// Remove removes a grant, from the next request on. It returns fault.NotFound when the holder
// does not have the grant, fault.Unavailable when the database fails.
func (o *GrantOperator) Remove(ctx context.Context, g registry.Grant) error {
	return o.ports.Transactions.Atomically(ctx, func(ctx context.Context) error {
		if err := o.ports.Grants.Remove(ctx, g); err != nil {
			return err
		}
		return o.ports.Recorder.RecordChanges(ctx, newGrantChange("grant_remove", g))
	})
}

// newGrantChange returns the audit event of a grant.
func newGrantChange(action audit.Action, g registry.Grant) audit.Change {
	return audit.Change{Category: audit.AccountChange, Action: action, ByOperator: true, Details: audit.Details{
		"userId": audit.Text(g.Holder), "grant": audit.Text(g.Action), "resource": audit.Text(g.Pattern.String()),
	}}
}
