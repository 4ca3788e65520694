// Package quarantining holds the use cases of quarantine: people who may review, and operators, hide a
// server or one version of it at once, list what is hidden, and release it (contract C-20 to C-24).
// The rules are in package registry; package publishing refuses changes of what is in quarantine.
package quarantining

import (
	"context"
	"slices"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/mirror"
	"github.com/tollgate-dev/tollgate/core/registry/notifying"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// listedAtOnce is how many entries a list reads at once.
const listedAtOnce = 100

// Target names a server, or one version of it, by texts that are not validated.
type Target struct {
	ServerName string
	Version    string // empty for the whole server
}

// OperatorPorts are the dependencies of an Operator. All fields are required.
type OperatorPorts struct {
	Transactions transaction.Runner
	Writer       registrystore.ServerWriter
	Quarantine   registrystore.Quarantine
	Mirrors      registrystore.MirrorRereader
	Recorder     authority.Recorder
	Events       *notifying.Recorder
	Clock        clock.Clock
}

// Operator puts servers in quarantine and releases them for operator commands. It is safe for
// concurrent use, also by other processes and a running service.
type Operator struct{ ports OperatorPorts }

// NewOperator returns an operator.
func NewOperator(p OperatorPorts) *Operator { return &Operator{p} }

// Add puts the target in quarantine. It returns fault.Invalid, with the name of the field, for a
// wrong reason, fault.NotFound when the server or the version is missing, fault.Conflict when it is
// in quarantine already, fault.Unavailable when the database fails.
func (o *Operator) Add(ctx context.Context, t Target, reason string) (registry.Quarantined, error) {
	r, err := registry.ParseReason(reason)
	if err != nil {
		return registry.Quarantined{}, err
	}
	return o.add(ctx, t, registry.Quarantined{Reason: r}, func(ctx context.Context, q registry.Quarantined) error {
		return o.ports.Recorder.RecordChanges(ctx, authority.QuarantineChange{
			ServerName: q.Name.String(), Version: q.Version.String(), Added: true, Reason: string(q.Reason),
		})
	})
}

// Release releases the target. It returns fault.NotFound when it is not in quarantine,
// fault.Conflict when another server now has one of the remote URLs, fault.Unavailable when the
// database fails.
func (o *Operator) Release(ctx context.Context, t Target) error {
	return o.release(ctx, t, "", func(ctx context.Context) error {
		return o.ports.Recorder.RecordChanges(ctx, authority.QuarantineChange{ServerName: t.ServerName, Version: t.Version})
	})
}

// List returns everything that is in quarantine, ordered by name, then version, both bytewise.
func (o *Operator) List(ctx context.Context) ([]registry.Quarantined, error) {
	everything, err := registry.ParsePattern("*")
	if err != nil {
		return nil, err
	}
	q := registrystore.QuarantineQuery{Patterns: []registry.Pattern{everything}, Limit: listedAtOnce}
	var all []registry.Quarantined
	for {
		found, err := o.ports.Quarantine.List(ctx, q)
		if err != nil {
			return nil, err
		}
		if all = append(all, found...); len(found) < q.Limit {
			return all, nil
		}
		last := found[len(found)-1]
		q.AfterName, q.AfterVersion = last.Name.String(), last.Version.String()
	}
}

// add puts the target in quarantine, with the reason and the person of q, and calls record in the
// transaction.
func (o *Operator) add(
	ctx context.Context, t Target, q registry.Quarantined, record func(context.Context, registry.Quarantined) error,
) (registry.Quarantined, error) {
	name, version, err := t.parse()
	if err != nil {
		return registry.Quarantined{}, err
	}
	var added registry.Quarantined
	err = o.change(ctx, name, func(ctx context.Context, l *registry.Lineage) error {
		q.Version = version
		var prior []registry.PriorStatus
		var err error
		if added, prior, err = l.Quarantine(q, o.ports.Clock.Now()); err != nil {
			return err
		}
		if err := o.ports.Quarantine.Add(ctx, added, prior); err != nil {
			return err
		}
		if err := o.ports.Events.RecordQuarantined(ctx, added); err != nil {
			return err
		}
		return record(ctx, added)
	})
	return added, err
}

// release releases the target, and calls record in the transaction. It returns fault.Forbidden if by,
// a person, is responsible for a document of the target (contract C-24); by is empty for an operator.
func (o *Operator) release(ctx context.Context, t Target, by registry.Holder, record func(context.Context) error) error {
	name, version, err := t.parse()
	if err != nil {
		return err
	}
	return o.change(ctx, name, func(ctx context.Context, l *registry.Lineage) error {
		prior, err := o.ports.Quarantine.PriorStatuses(ctx, name)
		if err != nil {
			return err
		}
		released, err := l.Release(version, prior, o.ports.Clock.Now())
		if err != nil {
			return err
		}
		if by != "" {
			people, err := o.ports.Writer.Responsible(ctx, name, version)
			if err != nil {
				return err
			}
			if slices.Contains(people, by) {
				return fault.New(fault.Forbidden, "you cannot release what you published yourself, or through a policy that you created")
			}
		}
		if err := o.ports.Quarantine.Remove(ctx, name, version, released); err != nil {
			return err
		}
		// What the mirror has refused meanwhile, new versions and documents, is read again.
		if from := l.Origin().Mirror; from != "" {
			if err := o.ports.Mirrors.Reread(ctx, mirror.Name(from)); err != nil {
				return err
			}
		}
		if err := o.ports.Events.RecordReleased(ctx, name, version); err != nil {
			return err
		}
		return record(ctx)
	})
}

// change decides a change of a server in one transaction, and stores it. Other changes of the server
// wait until then. A server may have many versions, so the transaction may be long.
func (o *Operator) change(ctx context.Context, name registry.Name, decide func(ctx context.Context, l *registry.Lineage) error) error {
	return o.ports.Transactions.Atomically(transaction.Long(ctx), func(ctx context.Context) error {
		releases, err := o.ports.Writer.Lock(ctx, name)
		if err != nil {
			return err
		}
		entries, err := o.ports.Quarantine.Entries(ctx, name)
		if err != nil {
			return err
		}
		lineage := registry.NewLineage(name, releases, entries...)
		if err := decide(ctx, lineage); err != nil {
			return err
		}
		var changes []registrystore.Change
		for _, r := range lineage.Changes() {
			changes = append(changes, registrystore.Change{Release: r})
		}
		if len(changes) == 0 {
			return nil
		}
		return o.ports.Writer.Save(ctx, changes)
	})
}

// parse returns the name and the version of the target; the zero version for the whole server. It
// returns fault.Invalid without a name, and fault.NotFound for a name or version that is not valid.
func (t Target) parse() (registry.Name, registry.Version, error) {
	if t.ServerName == "" {
		return registry.Name{}, registry.Version{}, fault.New(fault.Invalid, "serverName is missing")
	}
	name, err := registry.ParseName(t.ServerName)
	if err != nil {
		return registry.Name{}, registry.Version{}, fault.New(fault.NotFound, "server not found")
	}
	if t.Version == "" {
		return name, registry.Version{}, nil
	}
	version, err := registry.ParseVersion(t.Version)
	if err != nil {
		return registry.Name{}, registry.Version{}, fault.New(fault.NotFound, "server version not found")
	}
	return name, version, nil
}
