package publish

import (
	"context"
	"fmt"
	"slices"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

// maxReason is the most characters of a reason in the audit log.
const maxReason = 1000

// attempt identifies the caller and does the work. From there on every refusal is recorded in the
// audit log; what is done is recorded in the work's own transaction (contract R-38).
func (p *Publisher) attempt(ctx context.Context, r Request, act authority.Act, work func(*authority.Act) error) error {
	caller, err := p.ports.Authority.Identify(ctx, r.Token)
	if err != nil {
		return err
	}
	caller.Address = r.Address
	act.Caller = caller
	if err := work(&act); err != nil {
		return p.refuse(ctx, act, err)
	}
	return nil
}

// refuse records a refusal and returns its cause. Whoever sent the request may
// be gone; the record is made all the same. A refusal that cannot be recorded
// is the failure of the record, since none may go untold.
func (p *Publisher) refuse(ctx context.Context, act authority.Act, cause error) error {
	act.Reason, act.Warning = reason(cause), ""
	err := p.ports.Authority.Record(context.WithoutCancel(ctx), act)
	switch kind := fault.KindOf(cause); {
	case err == nil, kind == fault.Internal, kind == fault.Unavailable:
		return cause
	default:
		return fmt.Errorf("record a refused %s: %w", act.Action, err)
	}
}

// reason tells the audit log why, without what must not leave the service.
func reason(cause error) string {
	f, ok := fault.As(cause)
	if !ok || f.Kind == fault.Internal || f.Message == "" {
		return "internal error"
	}
	if runes := []rune(f.Message); len(runes) > maxReason {
		return string(runes[:maxReason]) + "…"
	}
	return f.Message
}

// admit checks a grant of one of the actions on the server, and then trust (contract ). A
// name that no server can have passes with a grant of any pattern, so that a publisher learns what
// is wrong with it.
func (p *Publisher) admit(ctx context.Context, c authority.Caller, serverName string, actions ...registry.Action) error {
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
		return fault.Newf(fault.Forbidden, "", "you have no %s permission on this registry", either(actions))
	}
	return fault.Newf(fault.Forbidden, "", "you have no %s permission for %s", either(actions), name)
}

func either(actions []registry.Action) string {
	words := string(actions[0])
	for _, a := range actions[1:] {
		words += " or " + string(a)
	}
	return words
}
