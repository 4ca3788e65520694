package publishing

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/change"
	"github.com/tollgate-dev/tollgate/core/registry/history"
	"github.com/tollgate-dev/tollgate/core/registry/permit"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

// SetOwner stores who answers for a server, whether or not writes are off: two empty texts remove the owner. A person
// needs the grant to publish or edit the server, or to operate and then FULL_TRUST; a publisher may not.
//
// Errors, in the order of the checks: fault.Unauthenticated, fault.Forbidden, fault.Invalid for a wrong owner,
// fault.NotFound without the server. fault.Unavailable when a dependency fails.
func (p *Publisher) SetOwner(ctx context.Context, who authority.Caller, serverName, team, contact string) error {
	act, err := p.begin(ctx, who, Target{Name: serverName}.newAct(actOwner))
	if err != nil {
		return err
	}
	return permit.Refuse(ctx, p.ports.Acts, act, p.setOwner(ctx, act, serverName, team, contact))
}

func (p *Publisher) setOwner(ctx context.Context, act authority.Act, serverName, team, contact string) error {
	if err := p.requireKeeper(ctx, act.Caller, serverName); err != nil {
		return err
	}
	owner, err := registry.NewOwner(team, contact)
	if err != nil {
		return err
	}
	name, err := registry.ParseName(serverName)
	if err != nil {
		return history.ErrNoServer()
	}
	return change.Commit(ctx, p.ports.Ports, name, func(_ context.Context, s change.Server) (change.Decision, error) {
		if len(s.Releases) == 0 {
			return change.Decision{}, history.ErrNoServer()
		}
		if act.Note = owner.Team; owner.Contact != "" {
			act.Note += " (" + owner.Contact + ")"
		}
		return change.Decision{
			Act: act, Announce: func(context.Context) error { return nil },
			Store: func(ctx context.Context) error { return p.ports.Owners.Set(ctx, name, owner) },
		}, nil
	})
}

// requireKeeper checks that the caller may say who answers for a server.
func (p *Publisher) requireKeeper(ctx context.Context, c authority.Caller, serverName string) error {
	writer := permission{[]registry.Action{registry.ActionPublish, registry.ActionEdit}, ""}
	err := p.requirePermission(ctx, c, serverName, permission{append(writer.grants, registry.ActionOperate), ""})
	if err != nil || p.requirePermission(ctx, c, serverName, writer) == nil {
		return err
	}
	_, err = c.RequireFullTrust()
	return err
}
