package publishing

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/history"
	"github.com/tollgate-dev/tollgate/core/registry/permit"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// SetStatus changes the status of one version, whether or not writes are off.
//
// Errors, in the order of the checks (contract R-6): fault.Unauthenticated, fault.Invalid for a
// body that is not a JSON object, fault.Forbidden, fault.Invalid for any other fault of the body,
// fault.NotFound, fault.Stale, fault.Invalid when there is nothing to change, fault.Conflict when
// another server now has one of the remote URLs. fault.Unavailable when a dependency fails.
func (p *Publisher) SetStatus(ctx context.Context, who authority.Caller, r Request, t Target) (registry.Record, error) {
	act, err := p.begin(ctx, who, t.newAct(actStatus))
	if err != nil {
		return registry.Record{}, err
	}
	record, err := p.updateStatus(ctx, r, t, &act)
	return record, permit.Refuse(ctx, p.ports.Acts, act, err)
}

// updateStatus changes the status of the target.
func (p *Publisher) updateStatus(
	ctx context.Context, r Request, t Target, act *authority.Act,
) (registry.Record, error) {
	update, err := p.readUpdate(ctx, act.Caller, r.Body, t.Name)
	if err != nil {
		return registry.Record{}, err
	}
	name, version, err := t.nameAndVersion()
	if err != nil {
		return registry.Record{}, err
	}
	c := target{name: name, version: version, condition: r.Condition}
	return p.commitRelease(ctx, act, c, func(l *registry.Lineage, now time.Time) (registry.Release, error) {
		return l.SetStatus(version, update, now)
	})
}

// SizeCheck checks that the response can be sent. It is called before the change is committed, and
// again when the transaction is repeated. Its error refuses the change.
type SizeCheck func(changed history.History) error

// SetStatusAll changes the status of all versions of a server together, and returns those that
// changed, newest publication first. If their documents are too large to hold, they are read after
// the commit, while the answer is sent. room is optional. Errors as of SetStatus; fault.Invalid
// when no version changes.
func (p *Publisher) SetStatusAll(
	ctx context.Context, who authority.Caller, r Request, serverName string, room SizeCheck,
) (history.History, error) {
	act, err := p.begin(ctx, who, Target{Name: serverName}.newAct(actStatus))
	if err != nil {
		return history.History{}, err
	}
	changed, err := p.updateAllStatuses(ctx, r, serverName, room, &act)
	return changed, permit.Refuse(ctx, p.ports.Acts, act, err)
}

// updateAllStatuses changes the status of all versions of a server.
func (p *Publisher) updateAllStatuses(
	ctx context.Context, r Request, serverName string, room SizeCheck, act *authority.Act,
) (history.History, error) {
	update, err := p.readUpdate(ctx, act.Caller, r.Body, serverName)
	if err != nil {
		return history.History{}, err
	}
	name, err := registry.ParseName(serverName)
	if err != nil {
		return history.History{}, fault.New(fault.NotFound, "server not found")
	}
	decide := func(l *registry.Lineage, now time.Time) ([]registry.Release, error) {
		return l.SetStatusAll(update, now)
	}
	var changed history.History
	prepare := func(ctx context.Context, decided []registry.Release) error {
		var err error
		if changed, err = history.SomeVersions(ctx, p.ports.Reader, name, decided); err != nil {
			return err
		}
		if room != nil {
			if err := room(changed); err != nil {
				return err
			}
		}
		return p.ports.Events.RecordServer(ctx, name, changed.Records, len(decided))
	}
	err = p.commit(transaction.Long(ctx), act, target{name: name, condition: r.Condition}, decide, prepare)
	return changed, err
}

// readUpdate reads the body. It checks the permission between the two steps of reading.
func (p *Publisher) readUpdate(
	ctx context.Context, caller authority.Caller, body []byte, name string,
) (registry.StatusUpdate, error) {
	parsed, err := registry.ParseStatusUpdateBody(body)
	if err != nil {
		return registry.StatusUpdate{}, err
	}
	if err := p.requirePermission(ctx, caller, name, statusPermission()); err != nil {
		return registry.StatusUpdate{}, err
	}
	return parsed.Update()
}
