package delegating

import (
	"context"
	"slices"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// Replaced is what Replace has changed.
type Replaced struct {
	Added, Removed []registry.Grant
	KeptOperator   bool // the grant operate stays, because the person is the last one who has it
}

// Replace makes the grants of a holder that come from an origin the wanted ones, in the transaction
// of the context, without events. Grants of another origin stay.
func (o *GrantOperator) Replace(
	ctx context.Context, holder registry.Holder, origin string, wanted []registry.Grant,
) (done Replaced, err error) {
	held, err := o.ports.Grants.Records(ctx, registrystore.GrantQuery{Holders: []registry.Holder{holder}})
	if err != nil {
		return done, err
	}
	for i := range held {
		r := &held[i]
		if r.ManagedBy != origin || slices.Contains(wanted, r.Grant) {
			continue
		}
		removed, err := o.removeUnlessLast(ctx, r)
		if err != nil {
			return done, err
		}
		if removed {
			done.Removed = append(done.Removed, r.Grant)
		} else {
			done.KeptOperator = true
		}
	}
	for _, g := range wanted {
		if slices.ContainsFunc(held, func(r registry.GrantRecord) bool { return r.Grant == g && r.ManagedBy == origin }) {
			continue
		}
		if err := o.ports.Grants.Add(ctx, registry.GrantRecord{Grant: g, ManagedBy: origin}); err != nil {
			return done, err
		}
		done.Added = append(done.Added, g)
	}
	return done, nil
}

// removeUnlessLast removes a grant, unless no one could operate without it.
func (o *GrantOperator) removeUnlessLast(ctx context.Context, r *registry.GrantRecord) (removed bool, err error) {
	if r.Action != registry.ActionOperate {
		return true, o.ports.Grants.Remove(ctx, *r)
	}
	if err := o.ports.Operators.Lock(ctx); err != nil {
		return false, err
	}
	before, err := o.ports.Operators.Any(ctx)
	if err == nil {
		err = o.ports.Grants.Remove(ctx, *r)
	}
	if err != nil {
		return false, err
	}
	after, err := o.ports.Operators.Any(ctx)
	if err != nil || after || !before {
		return true, err
	}
	return false, o.ports.Grants.Add(ctx, *r)
}

// RemoveOrigin removes all grants of an origin. It returns fault.Conflict with code last_operator
// when no active person could operate any more.
func (o *GrantOperator) RemoveOrigin(ctx context.Context, origin string) error {
	return o.ports.Transactions.Atomically(ctx, func(ctx context.Context) error {
		return authstore.KeepOperator(ctx, o.ports.Operators, func(ctx context.Context) error {
			held, err := o.ports.Grants.Records(ctx, registrystore.GrantQuery{ManagedBy: origin})
			for i := 0; i < len(held) && err == nil; i++ {
				err = o.ports.Grants.Remove(ctx, held[i])
			}
			return err
		})
	})
}

// MayOperate reports whether a holder has the grant operate.
func (o *GrantOperator) MayOperate(ctx context.Context, holder registry.Holder) (bool, error) {
	grants, err := o.ports.Grants.Of(ctx, holder)
	return slices.ContainsFunc(grants, func(g registry.Grant) bool { return g.Action == registry.ActionOperate }), err
}

// Operators returns the ids of the people who have the grant operate.
func (o *GrantOperator) Operators(ctx context.Context) (ids []string, err error) {
	all, err := o.ports.Grants.Records(ctx, registrystore.GrantQuery{})
	for i := range all {
		if _, isService := all[i].Holder.Service(); all[i].Action == registry.ActionOperate && !isService {
			ids = append(ids, string(all[i].Holder))
		}
	}
	return slices.Compact(ids), err // they are ordered, and may hold it by hand and from providers
}
