// Package permit holds the use cases by which an operator says who may change
// which servers. Every change leaves its trace in the audit log. What
// grants allow is decided where the registry is changed.
package permit

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/grantstore"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// Ports is what changing grants asks of the world. All fields are required.
type Ports struct {
	Transactions transaction.Runner
	Grants       grantstore.Store
	Trail        authority.Grants
}

// Operator gives grants and takes them back. It is not reachable from the API;
// who may use it is whoever may run the operator commands. It is safe for
// concurrent use.
type Operator struct{ ports Ports }

// New returns an operator.
func New(p Ports) *Operator { return &Operator{p} }

// Give lets the holder do what the grant says, from the next request on. A grant
// that is there already is left as it is, without an audit event; the store
// decides which of two callers at once adds it. fault.Unavailable when the
// database is away.
func (o *Operator) Give(ctx context.Context, g registry.Grant) error {
	held := false
	err := o.ports.Transactions.Atomically(ctx, func(ctx context.Context) error {
		err := o.ports.Grants.Add(ctx, g)
		if held = fault.Is(err, fault.Conflict); err != nil {
			return err
		}
		return o.ports.Trail.RecordGrant(ctx, changeOf(g, true))
	})
	if held {
		return nil
	}
	return err
}

// TakeBack ends a grant, from the next request on. fault.NotFound when there is
// no such grant, fault.Unavailable when the database is away.
func (o *Operator) TakeBack(ctx context.Context, g registry.Grant) error {
	return o.ports.Transactions.Atomically(ctx, func(ctx context.Context) error {
		if err := o.ports.Grants.Remove(ctx, g); err != nil {
			return err
		}
		return o.ports.Trail.RecordGrant(ctx, changeOf(g, false))
	})
}

func changeOf(g registry.Grant, given bool) authority.GrantChange {
	return authority.GrantChange{Holder: string(g.Holder), Given: given, Action: string(g.Action), Resource: g.Pattern.String()}
}
