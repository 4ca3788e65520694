package publish

import (
	"context"
	"fmt"
	"slices"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

// maxReasonLength is the greatest length of a reason in the audit log, in characters.
const maxReasonLength = 1000

// identifyCaller returns the act with the caller of the request. From there on every refusal is
// recorded in the audit log with recordRefusal; a change is recorded in its own transaction
// (contract R-38).
func (p *Publisher) identifyCaller(ctx context.Context, r Request, act authority.Act) (authority.Act, error) {
	caller, err := p.ports.Authority.Identify(ctx, r.Token)
	if err != nil {
		return authority.Act{}, err
	}
	caller.Address = r.Address
	act.Caller = caller
	return act, nil
}

// recordRefusal records that the act was refused, and returns the cause. It returns nil without a
// cause. The record is made even if the caller has cancelled the request. If it cannot be made, its
// error is returned instead, because every refusal must be recorded.
func (p *Publisher) recordRefusal(ctx context.Context, act authority.Act, cause error) error {
	if cause == nil {
		return nil
	}
	act.Reason, act.Warning = publicReason(cause), ""
	err := p.ports.Authority.Record(context.WithoutCancel(ctx), act)
	switch kind := fault.KindOf(cause); {
	case err == nil, kind == fault.Internal, kind == fault.Unavailable:
		return cause
	default:
		return fmt.Errorf("record a refused %s: %w", act.Action, err)
	}
}

// publicReason returns the reason for the audit log, without internal errors.
func publicReason(cause error) string {
	f, ok := fault.As(cause)
	if !ok || f.Kind == fault.Internal || f.Message == "" {
		return "internal error"
	}
	if runes := []rune(f.Message); len(runes) > maxReasonLength {
		return string(runes[:maxReasonLength]) + "…"
	}
	return f.Message
}

// requirePermission checks that the caller has a grant of one of the actions on the server, and
// then trust (contract ). For a name that no server can have, a grant of any pattern is
// enough, so that a publisher gets the error of the name.
func (p *Publisher) requirePermission(ctx context.Context, c authority.Caller, serverName string, actions ...registry.Action) error {
	grants, err := p.ports.Grants.Of(ctx, registry.Holder(c.UserID))
	if err != nil {
		return err
	}
	name, bad := registry.ParseName(serverName)
	granted := slices.ContainsFunc(grants, func(g registry.Grant) bool {
		return slices.Contains(actions, g.Action) && (bad != nil || g.Pattern.Matches(name))
	})
	switch {
	case granted:
		return p.ports.Authority.RequireTrust(ctx, c)
	case bad != nil:
		return fault.Newf(fault.Forbidden, "you have no %s permission on this registry", joinActions(actions))
	}
	return fault.Newf(fault.Forbidden, "you have no %s permission for %s", joinActions(actions), name)
}

// joinActions returns the actions joined by "or".
func joinActions(actions []registry.Action) string {
	words := string(actions[0])
	for _, a := range actions[1:] {
		words += " or " + string(a)
	}
	return words
}
