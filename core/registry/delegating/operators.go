package delegating

import (
	"context"
	"errors"
	"slices"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/refusal"
	"github.com/tollgate-dev/tollgate/core/scope"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// Operators decides who may do in a browser what operator commands do. It is safe for concurrent
// use.
type Operators struct {
	grants registrystore.Grants
	acts   authority.Acts
}

// NewOperators returns Operators.
func NewOperators(g registrystore.Grants, a authority.Acts) *Operators { return &Operators{g, a} }

// actOperate is the action of a refusal in the audit log.
const actOperate audit.Action = "operate"

var errNoOperate = fault.New(fault.Forbidden, "you have no operate permission")

// Authorize returns a person who may operate, as Permit does. Refusals for the grant are recorded
// in the audit log.
func (o *Operators) Authorize(ctx context.Context, who authority.Caller) (registry.Holder, error) {
	holder, err := o.Permit(ctx, who, scope.Admin)
	if errors.Is(err, errNoOperate) {
		err = refusal.Record(ctx, o.acts, authority.Act{Caller: who, Action: actOperate}, err)
	}
	return holder, err
}

// Permit returns a person or a service account that may operate: with the grant operate, at
// FULL_TRUST or by a token with the scope. It returns fault.Forbidden without the scope or the
// grant, for a publisher and, asking for a step-up, below FULL_TRUST.
func (o *Operators) Permit(
	ctx context.Context, who authority.Caller, needed scope.Scope,
) (registry.Holder, error) {
	holder, err := who.Person()
	if err == nil {
		err = who.RequireScope(needed)
	}
	if err != nil {
		return "", err
	}
	grants, err := o.grants.Of(ctx, holder)
	if err != nil {
		return "", err
	}
	if !slices.ContainsFunc(grants, func(g registry.Grant) bool { return g.Action == registry.ActionOperate }) {
		return "", errNoOperate
	}
	return who.RequireFullTrust()
}
