// Package operate decides who may do in a browser what operator commands do.
package operate

import (
	"context"
	"net/netip"
	"slices"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/refusal"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// Authorizer decides who may operate. It is safe for concurrent use.
type Authorizer struct {
	grants    registrystore.Grants
	authority authority.Authority
}

// New returns an Authorizer.
func New(g registrystore.Grants, a authority.Authority) *Authorizer { return &Authorizer{g, a} }

// Request is the caller of an act.
type Request struct {
	Token   string     // the access token as it was sent; empty without one
	Address netip.Addr // of the client
}

// actOperate is the action of a refusal in the audit log.
const actOperate = "operate"

// Authorize returns the user id of a person who may operate: with the grant operate, at FULL_TRUST. It
// returns fault.Unauthenticated without a good token, fault.Forbidden without the grant, for the token
// of a publisher and, asking for a step-up, below FULL_TRUST. Refusals for the grant are recorded in the
// audit log.
func (a *Authorizer) Authorize(ctx context.Context, r Request) (registry.Holder, error) {
	caller, err := a.authority.Identify(ctx, r.Token)
	if err != nil {
		return "", err
	}
	caller.Address = r.Address
	if caller.Publisher != nil {
		return "", fault.New(fault.Forbidden, "the token of a publisher may not operate: sign in as a person")
	}
	holder := registry.Holder(caller.UserID)
	grants, err := a.grants.Of(ctx, holder)
	if err != nil {
		return "", err
	}
	if !slices.ContainsFunc(grants, func(g registry.Grant) bool { return g.Action == registry.ActionOperate }) {
		refused := fault.New(fault.Forbidden, "you have no operate permission")
		return "", refusal.Record(ctx, a.authority, authority.Act{Caller: caller, Action: actOperate}, refused)
	}
	return holder, a.authority.RequireFullTrust(ctx, caller)
}
