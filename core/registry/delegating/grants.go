// Package delegating holds the use cases that say who may change which servers: operators give
// grants to people; people and operators keep the policies of publishers; a Prover exchanges the
// proof of a publisher for a token; a Rechecker looks at intervals whether the domains of policies
// still have their keys (contract P-1 to P-22). Package publisher has the rules of proofs and
// policies, package permit what was given, and package publishing enforces it.
package delegating

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// GrantPorts are the dependencies of an Operator. All fields are required.
type GrantPorts struct {
	Transactions transaction.Runner
	Grants       registrystore.Grants
	Operators    authstore.Operators
	Recorder     authority.Recorder
}

// GrantOperator gives and removes grants. The API does not expose it; everyone who may run the
// operator commands may use it. It is safe for concurrent use.
type GrantOperator struct{ ports GrantPorts }

// NewGrantOperator returns an operator.
func NewGrantOperator(p GrantPorts) *GrantOperator { return &GrantOperator{p} }

// Add adds a grant, which applies from the next request on. An existing grant stays as it is,
// without an audit event. It returns fault.Unavailable when the database fails.
func (o *GrantOperator) Add(ctx context.Context, g registry.Grant) error {
	_, err := o.Create(ctx, registry.GrantRecord{Grant: g})
	if fault.Is(err, fault.Conflict) {
		return nil
	}
	return err
}

// Create adds a grant without a provider and returns it with its ID. It returns fault.Conflict when the
// holder has it already, and the error of authority.CheckGiven.
func (o *GrantOperator) Create(ctx context.Context, g registry.GrantRecord) (registry.GrantRecord, error) {
	return transaction.Do(transaction.Exclusive(ctx), o.ports.Transactions,
		func(ctx context.Context) (registry.GrantRecord, error) {
			if err := authority.CheckGiven(ctx, string(g.Action)); err != nil {
				return registry.GrantRecord{}, err
			}
			if err := o.ports.Grants.Add(ctx, g); err != nil {
				return registry.GrantRecord{}, err
			}
			if err := o.ports.Recorder.RecordChanges(ctx, newGrantChange("grant_add", g.Grant)); err != nil {
				return registry.GrantRecord{}, err
			}
			held, err := o.ports.Grants.Records(ctx, registrystore.GrantQuery{Holders: []registry.Holder{g.Holder}})
			if stored := registry.FindIn(held, func(r *registry.GrantRecord) bool { return r.Grant == g.Grant }); stored != nil {
				return *stored, err
			}
			return registry.GrantRecord{}, err
		})
}

// Manage makes the owner of a file manage a grant. It returns fault.NotFound when the holder does
// not have it.
func (o *GrantOperator) Manage(ctx context.Context, g registry.Grant, by string) error {
	return o.ports.Transactions.Atomically(transaction.Exclusive(ctx), func(ctx context.Context) error {
		if err := o.ports.Grants.Manage(ctx, g, by); err != nil {
			return err
		}
		change, managed := newGrantChange("grant_change", g), g.Object()
		managed.Fields = audit.Details{"managedBy": audit.Text(by)}
		audit.Changing(change.Details, g.Object(), managed)
		return o.ports.Recorder.RecordChanges(ctx, change)
	})
}

// Find returns the grant with an ID, or fault.NotFound.
func (o *GrantOperator) Find(ctx context.Context, id registry.GrantID) (registry.GrantRecord, error) {
	found, err := o.ports.Grants.Records(ctx, registrystore.GrantQuery{ID: id})
	if err == nil && len(found) == 0 {
		err = fault.New(fault.NotFound, "there is no grant with this id")
	}
	if err != nil {
		return registry.GrantRecord{}, err
	}
	return found[0], nil
}

// maxConfirmed is how many grants Confirm takes.
const maxConfirmed = 100

// Confirm records that grants are still needed, all or none. It returns fault.Invalid for no grant or too many,
// and fault.NotFound if one does not exist.
func (o *GrantOperator) Confirm(ctx context.Context, ids []registry.GrantID) error {
	if len(ids) == 0 || len(ids) > maxConfirmed {
		return fault.Newf(fault.Invalid, "select 1 to %d grants", maxConfirmed)
	}
	return o.ports.Transactions.Atomically(ctx, func(ctx context.Context) error {
		for _, id := range ids {
			g, err := o.Find(ctx, id)
			if err == nil {
				err = o.ports.Recorder.RecordChanges(ctx, newGrantChange("grant_confirm", g.Grant))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// RemoveByID removes the grant with an ID, as Remove does. It also returns the error of check.
func (o *GrantOperator) RemoveByID(
	ctx context.Context, id registry.GrantID, check registry.Check[registry.GrantRecord],
) error {
	return o.ports.Transactions.Atomically(transaction.Exclusive(ctx), func(ctx context.Context) error {
		g, err := o.Find(ctx, id)
		if err == nil {
			err = check.Permit(&g)
		}
		if err == nil {
			err = g.CheckByHand()
		}
		if err != nil {
			return err
		}
		return authstore.KeepOperator(ctx, o.ports.Operators, func(ctx context.Context) error {
			if err := o.ports.Grants.Remove(ctx, g); err != nil {
				return err
			}
			return o.ports.Recorder.RecordChanges(ctx, newGrantChange("grant_remove", g.Grant))
		})
	})
}

// Remove removes the grant without a provider, from the next request on. It returns fault.NotFound when
// the holder does not have the grant, fault.Conflict if only a provider gives it, and with code
// last_operator when no active person could operate any more, fault.Unavailable when the database
// fails, and the error of check.
func (o *GrantOperator) Remove(ctx context.Context, g registry.Grant, check registry.Check[registry.GrantRecord]) error {
	return o.ports.Transactions.Atomically(transaction.Exclusive(ctx), func(ctx context.Context) error {
		held, err := o.ports.Grants.Records(ctx, registrystore.GrantQuery{Holders: []registry.Holder{g.Holder}})
		r := registry.FindIn(held, func(r *registry.GrantRecord) bool { return r.Grant == g }) // one by hand is first
		if err == nil && r == nil {
			err = fault.New(fault.NotFound, "there is no grant like this")
		}
		if err != nil {
			return err
		}
		return o.RemoveByID(ctx, r.ID, check)
	})
}

// newGrantChange returns the audit event of a grant.
func newGrantChange(action audit.Action, g registry.Grant) audit.Change {
	return audit.Change{Category: audit.AccountChange, Action: action, ByOperator: true, Details: audit.About(audit.Details{
		"userId": audit.Text(g.Holder), "grant": audit.Text(g.Action), "resource": audit.Text(g.Pattern.String()),
	}, g.Object())}
}
