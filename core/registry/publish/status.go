package publish

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/browse"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

// SetStatus changes the status of one version, whether or not writes are off.
//
// Errors, in the order of the checks (contract R-6): fault.Unauthenticated, fault.Invalid for a
// body that is no JSON object, fault.Forbidden, fault.Invalid for any other fault of the body,
// fault.NotFound, fault.Stale, fault.Invalid when there is nothing to change, fault.Conflict when
// another server has taken a remote URL meanwhile. fault.Unavailable when a dependency is away.
func (p *Publisher) SetStatus(ctx context.Context, r Request, t Target) (registry.Record, error) {
	var record registry.Record
	err := p.attempt(ctx, r, t.act(actStatus), func(act *authority.Act) error {
		update, err := p.readUpdate(ctx, act, r.Body, t.Name)
		if err != nil {
			return err
		}
		name, version, err := t.parse()
		if err != nil {
			return err
		}
		record, err = p.setStatus(ctx, act, r.Condition, registry.Release{Name: name, Version: version}, update)
		return err
	})
	return record, err
}

// Room makes sure that the answer can be sent. It is called when the change is
// about to be committed; its error refuses the change. It may be called again
// when the transaction is repeated.
type Room func(changed browse.History) error

// SetStatusAll changes the status of all versions of a server together, and
// returns those that changed, newest publication first. Where their documents
// are too many to be held, they are read after the change was committed, while
// the answer is sent. Errors as of SetStatus; none to change is fault.Invalid.
func (p *Publisher) SetStatusAll(ctx context.Context, r Request, serverName string, room Room) (browse.History, error) {
	var changed browse.History
	err := p.attempt(ctx, r, Target{Name: serverName}.act(actStatus), func(act *authority.Act) error {
		update, err := p.readUpdate(ctx, act, r.Body, serverName)
		if err != nil {
			return err
		}
		name, err := registry.ParseName(serverName)
		if err != nil {
			return fault.New(fault.NotFound, "", "server not found")
		}
		changed, err = p.setStatusAll(ctx, act, change{name: name, condition: r.Condition, room: room}, update)
		return err
	})
	return changed, err
}

// readUpdate checks the permission between the two steps of reading the body.
func (p *Publisher) readUpdate(ctx context.Context, act *authority.Act, body []byte, name string) (registry.StatusUpdate, error) {
	parsed, err := registry.ParseStatusUpdateBody(body)
	if err != nil {
		return registry.StatusUpdate{}, err
	}
	if err := p.admit(ctx, act.Caller, name, registry.ActionPublish, registry.ActionEdit); err != nil {
		return registry.StatusUpdate{}, err
	}
	return parsed.Update()
}
