package transfer

import (
	"bytes"
	"context"
	"errors"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/event"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// maxRounds is how often a batch is tried again without the records that conflict with another
// server.
const maxRounds = 5

// storeBatch stores the new records of one server in one transaction, so that their own times stay.
func (m *Mover) storeBatch(ctx context.Context, batch []candidate) ([]Outcome, error) {
	rest, outcomes, err := m.splitKnown(ctx, batch)
	for round := 0; err == nil && len(rest) > 0; round++ {
		var done []Outcome
		done, err = m.commitBatch(ctx, rest, nil)
		if err == nil {
			return append(outcomes, done...), nil
		}
		if !fault.Is(err, fault.Conflict) || round == maxRounds {
			break
		}
		rest, done, err = m.removeConflicting(ctx, rest)
		outcomes = append(outcomes, done...)
	}
	return outcomes, err
}

// splitKnown separates new records from those whose versions are stored already. It takes no lock,
// so that an import without new records does not block other writers.
func (m *Mover) splitKnown(ctx context.Context, batch []candidate) (rest []candidate, outcomes []Outcome, err error) {
	quarantined, err := m.ports.Quarantine.Entries(ctx, batch[0].release.Name)
	if err != nil {
		return nil, nil, err
	}
	for _, c := range batch {
		o, err := m.compareStored(ctx, c, quarantined)
		switch {
		case fault.Is(err, fault.NotFound):
			rest = append(rest, c)
		case err != nil:
			return nil, outcomes, err
		default:
			outcomes = append(outcomes, o)
		}
	}
	return rest, outcomes, nil
}

// compareStored returns the outcome for a record whose version is in quarantine or stored already,
// or fault.NotFound.
func (m *Mover) compareStored(ctx context.Context, c candidate, quarantined []registry.Quarantined) (Outcome, error) {
	if err := registry.CheckQuarantine(quarantined, c.release.Version); err != nil && len(c.held.Entries) == 0 {
		return c.newOutcome(Refused, Reason(err)), nil
	}
	stored, err := m.ports.Reader.Version(ctx, c.release.Name, c.release.Version, true)
	if err != nil {
		return Outcome{}, err
	}
	return c.compareWith(stored.Document, stored.Release), nil
}

// compareWith returns the outcome for a record whose version exists already. A version is published
// only once (contract R-25), and the import does not change its status.
func (c candidate) compareWith(document []byte, here registry.Release) Outcome {
	switch {
	case !bytes.Equal(document, c.document.Bytes()):
		return c.newOutcome(Refused, "the registry already has this version with another document, and a published version cannot be replaced")
	case here.Status != c.release.Status:
		return c.newOutcome(Skipped, "is "+string(here.Status)+" here and "+string(c.release.Status)+" in the import")
	}
	return c.newOutcome(Skipped, "")
}

func (c candidate) newOutcome(v Verdict, reason string) Outcome {
	return Outcome{
		Verdict: v, Origin: c.origin, Reason: reason,
		Name: c.release.Name.String(), Version: c.release.Version.String(),
	}
}

// commitBatch stores records in one transaction. If atEnd is set, it stores nothing and returns
// atEnd.
func (m *Mover) commitBatch(ctx context.Context, batch []candidate, atEnd error) ([]Outcome, error) {
	var outcomes []Outcome
	err := m.ports.Transactions.Atomically(ctx, func(ctx context.Context) error {
		var err error
		if outcomes, err = m.addNew(ctx, batch); err != nil {
			return err
		}
		return atEnd
	})
	return outcomes, err
}

// addNew locks the server of the records and saves the new ones.
func (m *Mover) addNew(ctx context.Context, batch []candidate) ([]Outcome, error) {
	name := batch[0].release.Name
	releases, err := m.ports.Writer.Lock(ctx, name)
	if err != nil {
		return nil, err
	}
	quarantined, err := m.ports.Quarantine.Entries(ctx, name)
	if err != nil {
		return nil, err
	}
	here := make(map[registry.Version]bool, len(releases)+len(batch))
	for _, r := range releases {
		here[r.Version] = true
	}
	first := make(map[registry.Version]candidate, len(batch))
	var fresh []candidate
	var outcomes []Outcome
	for _, c := range batch {
		v := c.release.Version
		before, twice := first[v]
		switch {
		case here[v]: // stored since splitKnown
			o, err := m.compareStored(ctx, c, quarantined)
			if err != nil {
				return nil, err
			}
			outcomes = append(outcomes, o)
		case twice:
			outcomes = append(outcomes, c.compareWith(before.document.Bytes(), before.release))
		default:
			first[v] = c
			fresh = append(fresh, c)
		}
	}
	done, err := m.saveNew(ctx, registry.NewLineage(name, releases, quarantined...), fresh)
	return append(outcomes, done...), err
}

// saveNew adds records to the lineage and stores its changes.
func (m *Mover) saveNew(ctx context.Context, l *registry.Lineage, fresh []candidate) ([]Outcome, error) {
	releases := make([]registry.Release, 0, len(fresh))
	documents := make(map[registry.Version]registry.Document, len(fresh))
	held := make([]registry.Held, 0, len(fresh))
	for _, c := range fresh {
		held = append(held, c.held)
		releases = append(releases, c.release)
		documents[c.release.Version] = c.document
	}
	_, errs := l.Import(releases, m.ports.Clock.Now(), held...)
	outcomes := make([]Outcome, 0, len(fresh))
	var taken []authority.Change
	for i, c := range fresh {
		if errs[i] != nil {
			outcomes = append(outcomes, c.newOutcome(Refused, Reason(errs[i])))
			continue
		}
		outcomes = append(outcomes, c.newOutcome(Taken, ""))
		taken = append(taken, authority.ImportedVersion{ServerName: c.release.Name.String(), Version: c.release.Version.String()})
	}
	var changes []registrystore.Change
	var published []registry.Record
	for _, r := range l.Changes() {
		change := registrystore.Change{Release: r}
		if doc, ok := documents[r.Version]; ok {
			change.Document, change.Remotes = doc.Bytes(), doc.Remotes()
			published = append(published, registry.Record{Release: r, Document: doc.Bytes()})
		}
		changes = append(changes, change)
	}
	if len(changes) == 0 {
		return outcomes, nil
	}
	if err := m.ports.Writer.Save(ctx, changes); err != nil {
		return nil, err
	}
	if err := m.ports.Events.RecordVersions(ctx, event.Published, published...); err != nil {
		return nil, err
	}
	quarantined, err := m.saveQuarantine(ctx, l)
	if err != nil {
		return nil, err
	}
	return outcomes, m.ports.Recorder.RecordChanges(ctx, append(taken, quarantined...)...)
}

// saveQuarantine stores the entries that an import has added, with their events, and returns them for
// the audit log.
func (m *Mover) saveQuarantine(ctx context.Context, l *registry.Lineage) (added []authority.Change, err error) {
	entries, prior := l.CarriedQuarantine()
	for _, q := range entries {
		if err := m.ports.Quarantine.Add(ctx, q, nil); err != nil {
			return nil, err
		}
		if err := m.ports.Events.RecordQuarantined(ctx, q); err != nil {
			return nil, err
		}
		added = append(added, authority.QuarantineChange{
			ServerName: q.Name.String(), Version: q.Version.String(), Added: true, Reason: string(q.Reason),
		})
	}
	if len(prior) == 0 {
		return added, nil
	}
	return added, m.ports.Quarantine.SetPrior(ctx, l.Name(), prior)
}

// errDryRun rolls back a transaction that only tests whether a commit is possible.
var errDryRun = errors.New("a dry run is rolled back")

// removeConflicting refuses the records that conflict with another server, and returns the rest. It
// stores each record alone and rolls that back.
func (m *Mover) removeConflicting(ctx context.Context, batch []candidate) (rest []candidate, outcomes []Outcome, err error) {
	for _, c := range batch {
		_, err := m.commitBatch(ctx, []candidate{c}, errDryRun)
		switch {
		case errors.Is(err, errDryRun):
			rest = append(rest, c)
		case fault.Is(err, fault.Conflict):
			outcomes = append(outcomes, c.newOutcome(Refused, Reason(err)))
		default:
			return nil, outcomes, err
		}
	}
	return rest, outcomes, nil
}
