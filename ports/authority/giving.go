package authority

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/scope"
)

// giverKey is the key of the caller in a context of GivenBy.
type giverKey struct{}

// GivenBy returns a context for what a caller does for others: a token gives no more than it has.
func GivenBy(ctx context.Context, who Caller) context.Context {
	return context.WithValue(ctx, giverKey{}, who)
}

// Giver returns the caller of GivenBy. Without one it is a caller who gives by no token.
func Giver(ctx context.Context) Caller {
	who, _ := ctx.Value(giverKey{}).(Caller)
	return who
}

// CheckGiven returns fault.Forbidden if the caller of GivenBy acts by a token that must not give a grant
// for an action: operate never, and others only if the token has their scope. Sessions at FULL_TRUST and
// the operator commands give every grant.
func CheckGiven(ctx context.Context, action string) error {
	needed := actionScope(registry.Action(action))
	if needed == scope.Admin {
		return RefuseToken(ctx, "give the grant "+action)
	}
	return Giver(ctx).RequireScope(needed)
}

// RefuseToken returns fault.Forbidden if the caller of GivenBy acts by a token, for what tokens cannot do.
func RefuseToken(ctx context.Context, do string) error {
	if Giver(ctx).IsToken() {
		return fault.Newf(fault.Forbidden, "a token cannot %s: sign in", do)
	}
	return nil
}
