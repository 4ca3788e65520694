package mirroring

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/change"
	"github.com/tollgate-dev/tollgate/core/registry/event"
	"github.com/tollgate-dev/tollgate/core/registry/mirror"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// Remove removes a mirror and returns how many servers it had. They stay, and can be changed here
// then; with purge, they are deleted with all their versions, and their names can be published
// again. What is in quarantine stays there also with purge. Documents that wait for review do so no
// more. A read of the other registry ends. It returns fault.NotFound if the mirror does not exist,
// and the error of check, which must hold before anything is removed.
// If the context ends, or the database fails, another call continues.
func (o *Operator) Remove(
	ctx context.Context, name mirror.Name, purge bool, check registry.Check[mirror.Mirror],
) (int, error) {
	l, err := o.take(ctx, name)
	if err != nil {
		return 0, err
	}
	defer l.release(ctx)
	m, err := o.Find(ctx, name)
	if err == nil {
		err = check.Permit(&m)
	}
	if err != nil {
		return 0, err
	}
	servers, after := 0, ""
	for {
		page, err := o.ports.Mirrored.Page(ctx, name, after, batchServers)
		if err != nil {
			return servers, err
		}
		if len(page) == 0 {
			break
		}
		after = page[len(page)-1].Name.String()
		n, err := o.leave(ctx, l, page, purge)
		if err != nil {
			return servers, err
		}
		servers += n
	}
	return servers, o.ports.Transactions.Atomically(transaction.Long(ctx), func(ctx context.Context) error {
		if err := l.renew(ctx); err != nil {
			return err
		}
		if err := o.ports.Mirrors.Remove(ctx, name); err != nil {
			return err
		}
		change := newMirrorChange("mirror_remove", &m)
		audit.About(change.Details, m.Object())["purged"] = audit.Flag(purge)
		return o.ports.Recorder.RecordChanges(ctx, change)
	})
}

// leave makes the servers of a page local, or deletes them, in one transaction. It returns how many
// there were.
func (o *Operator) leave(ctx context.Context, l *lease, page []mirror.Tracked, purge bool) (int, error) {
	return transaction.Do(transaction.Long(ctx), o.ports.Transactions, func(ctx context.Context) (n int, err error) {
		if err := l.renew(ctx); err != nil {
			return 0, err
		}
		var adopted, purged []registry.Name
		for i, t := range page {
			if _, err := o.supersede(ctx, t); err != nil {
				return 0, err
			}
			if i > 0 && page[i-1].Name == t.Name {
				continue
			}
			locked, err := o.lock(ctx, t.Name)
			if err != nil {
				return 0, err
			}
			if locked.Origin().Mirror != string(l.mirror) { // left before, or never listed
				continue
			}
			n++
			if purge && len(locked.Quarantined) == 0 {
				purged = append(purged, t.Name)
				continue
			}
			adopted = append(adopted, t.Name)
			if purge {
				if err := o.deleteAll(ctx, locked); err != nil {
					return 0, err
				}
			}
		}
		return n, o.leaveServers(ctx, adopted, purged)
	})
}

// deleteAll deletes all versions of a server, which become local, and records the events. What is
// in quarantine is deleted already, and stays so after its release.
func (o *Operator) deleteAll(ctx context.Context, l change.Server) error {
	outcomes, _ := l.Mirror(l.Origin(), allDeleted(l.Releases), o.now()) // there are no errors without documents
	deleted := map[registry.Version]bool{}
	for i, r := range l.Releases {
		deleted[r.Version] = outcomes[i] == registry.MirrorStatus
	}
	if _, prior := l.CarriedQuarantine(); len(prior) > 0 {
		if err := o.ports.Quarantine.SetPrior(ctx, l.Name(), prior); err != nil {
			return err
		}
	}
	if err := l.Save(ctx, o.ports.Writer); err != nil {
		return err
	}
	var records []registry.Record
	for _, r := range l.Changes() {
		if !deleted[r.Version] {
			continue
		}
		stored, err := o.ports.Reader.Version(ctx, r.Name, r.Version, true)
		if err != nil {
			return err
		}
		stored.Origin = registry.Origin{}
		records = append(records, stored)
	}
	return o.ports.Events.RecordVersions(ctx, event.Status, records...)
}

// lock locks a server. Its lineage knows the statuses that its versions had before their
// quarantine.
func (o *Operator) lock(ctx context.Context, name registry.Name) (change.Server, error) {
	s, err := change.Lock(ctx, o.ports.Writer, o.ports.Quarantine, name)
	if err != nil || len(s.Quarantined) == 0 {
		return s, err
	}
	prior, err := o.ports.Quarantine.PriorStatuses(ctx, name)
	s.Lineage = s.Lineage.WithPrior(prior)
	return s, err
}

// allDeleted returns a list that has all versions as deleted ones.
func allDeleted(releases []registry.Release) []registry.Upstream {
	list := make([]registry.Upstream, len(releases))
	for i, r := range releases {
		r.Status, r.StatusMessage = registry.StatusDeleted, absent
		list[i].Release = r
	}
	return list
}

// leaveServers makes servers local and deletes others.
func (o *Operator) leaveServers(ctx context.Context, adopted, purged []registry.Name) error {
	if len(adopted) > 0 {
		if err := o.ports.Mirrored.Adopt(ctx, adopted); err != nil {
			return err
		}
	}
	if len(purged) == 0 {
		return nil
	}
	for _, name := range purged {
		if err := o.ports.Events.RecordServer(ctx, name, nil, 0); err != nil {
			return err
		}
	}
	return o.ports.Mirrored.Purge(ctx, purged)
}
