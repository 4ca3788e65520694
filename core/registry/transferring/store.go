package transferring

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/change"
	"github.com/tollgate-dev/tollgate/core/registry/event"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// maxRounds is how often the records of a server are tried again without those that conflict with
// another server.
const maxRounds = 5

// storeGroup stores the new records of several servers.
func (m *Mover) storeGroup(ctx context.Context, group [][]candidate) (outcomes []Outcome, err error) {
	var fresh [][]candidate
	for _, batch := range group {
		rest, known, err := m.splitKnown(ctx, batch)
		outcomes = append(outcomes, known...)
		if err != nil {
			return outcomes, err
		}
		if len(rest) > 0 {
			fresh = append(fresh, rest)
		}
	}
	done, err := m.storeNew(ctx, fresh)
	return append(outcomes, done...), err
}

// storeNew stores new records of servers in one transaction. If the store refuses a change, it
// stores each half of the servers in its own, and so on: of two servers that conflict with each
// other, the first in the source is stored, as if each had its own transaction.
func (m *Mover) storeNew(ctx context.Context, servers [][]candidate) ([]Outcome, error) {
	switch len(servers) {
	case 0:
		return nil, nil
	case 1:
		return m.storeServer(ctx, servers[0])
	}
	outcomes, err := m.commit(ctx, servers, nil)
	if !isRefused(err) {
		return outcomes, err
	}
	half := len(servers) / 2
	outcomes, err = m.storeNew(ctx, servers[:half])
	if err != nil {
		return outcomes, err
	}
	done, err := m.storeNew(ctx, servers[half:])
	return append(outcomes, done...), err
}

// isRefused reports whether the store refused a change because of what it changes.
func isRefused(err error) bool { return fault.Is(err, fault.Conflict) || fault.Is(err, fault.Invalid) }

// storeServer stores new records of one server in one transaction, so that their own times stay.
func (m *Mover) storeServer(ctx context.Context, rest []candidate) (outcomes []Outcome, err error) {
	for round := 0; err == nil && len(rest) > 0; round++ {
		var done []Outcome
		done, err = m.commit(ctx, [][]candidate{rest}, nil)
		if err == nil {
			return append(outcomes, done...), nil
		}
		if !isRefused(err) || round == maxRounds {
			break
		}
		rest, done, err = m.removeRefused(ctx, rest)
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
		return c.newOutcome(Refused,
			"the registry already has this version with another document, and a published version cannot be replaced")
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

// commit stores records of servers in one transaction. If atEnd is set, it stores nothing and
// returns atEnd.
func (m *Mover) commit(ctx context.Context, servers [][]candidate, atEnd error) ([]Outcome, error) {
	// All transactions lock servers in one order.
	servers = slices.SortedFunc(slices.Values(servers), func(a, b []candidate) int {
		return strings.Compare(a[0].release.Name.String(), b[0].release.Name.String())
	})
	do := func(ctx context.Context) ([]Outcome, error) {
		s := &storing{Mover: m, owners: map[registry.Name]registry.Owner{}}
		for _, batch := range servers {
			if err := s.addServer(ctx, batch); err != nil {
				return nil, err
			}
		}
		return s.outcomes, cmp.Or(s.save(ctx), atEnd)
	}
	return transaction.Do(transaction.Long(ctx), m.ports.Transactions, do)
}

// storing is what one transaction of an import stores.
type storing struct {
	*Mover

	outcomes  []Outcome
	lineages  []*registry.Lineage // those that change
	changes   []registrystore.Change
	published []registry.Record
	audit     []audit.Change
	lists     []tools.Stored
	owners    map[registry.Name]registry.Owner // that an import names, of servers with new versions
}

// addServer locks the server of records and adds the new ones.
func (s *storing) addServer(ctx context.Context, batch []candidate) error {
	name := batch[0].release.Name
	locked, err := change.Lock(ctx, s.ports.Writer, s.ports.Quarantine, name)
	if err != nil {
		return err
	}
	here := make(map[registry.Version]bool, len(locked.Releases)+len(batch))
	for _, r := range locked.Releases {
		here[r.Version] = true
	}
	first := make(map[registry.Version]candidate, len(batch))
	var fresh []candidate
	for _, c := range batch {
		v := c.release.Version
		before, twice := first[v]
		switch {
		case here[v]: // stored since splitKnown
			o, err := s.compareStored(ctx, c, locked.Quarantined)
			if err != nil {
				return err
			}
			s.outcomes = append(s.outcomes, o)
		case twice:
			s.outcomes = append(s.outcomes, c.compareWith(before.document.Bytes(), before.release))
		default:
			first[v] = c
			fresh = append(fresh, c)
		}
	}
	s.addNew(locked.Lineage, fresh)
	return nil
}

// addNew adds records to the lineage of their server, and its changes.
func (s *storing) addNew(l *registry.Lineage, fresh []candidate) {
	releases := make([]registry.Release, 0, len(fresh))
	documents := make(map[registry.Version]registry.Document, len(fresh))
	held := make([]registry.Held, 0, len(fresh))
	for _, c := range fresh {
		held = append(held, c.held)
		releases = append(releases, c.release)
		documents[c.release.Version] = c.document
	}
	_, errs := l.Import(releases, s.ports.Clock.Now(), held...)
	for i, c := range fresh {
		if errs[i] != nil {
			s.outcomes = append(s.outcomes, c.newOutcome(Refused, Reason(errs[i])))
			continue
		}
		s.outcomes = append(s.outcomes, c.newOutcome(Taken, ""))
		s.lists = append(s.lists, c.lists...)
		if c.owner != (registry.Owner{}) {
			s.owners[c.release.Name] = c.owner
		}
		s.audit = append(s.audit, s.run.Part(registry.NewOperatorChange("import",
			registry.VersionDetails(c.release.Name.String(), c.release.Version.String()))))
	}
	changes := l.Changes()
	if len(changes) == 0 {
		return
	}
	s.lineages = append(s.lineages, l)
	for _, r := range changes {
		change := registrystore.Change{Release: r}
		if doc, ok := documents[r.Version]; ok {
			change.Document, change.Remotes = doc.Bytes(), doc.Remotes()
			s.published = append(s.published, registry.Record{Release: r, Document: doc.Bytes()})
		}
		s.changes = append(s.changes, change)
	}
}

// save stores the changes, their events and their entries of the audit log.
func (s *storing) save(ctx context.Context) error {
	if len(s.changes) == 0 {
		return nil
	}
	if err := s.ports.Writer.Save(ctx, s.changes); err != nil {
		return err
	}
	for _, l := range s.lists {
		if err := s.ports.ToolLists.Put(ctx, l); err != nil {
			return err
		}
	}
	for name, o := range s.owners { // an owner that is set here stays
		here, err := s.ports.Owners.Of(ctx, name)
		if err == nil && here == (registry.Owner{}) {
			err = s.ports.Owners.Set(ctx, name, o)
		}
		if err != nil {
			return err
		}
	}
	if err := s.ports.Events.RecordVersions(ctx, event.Published, s.published...); err != nil {
		return err
	}
	for _, l := range s.lineages {
		quarantined, err := s.saveQuarantine(ctx, l)
		if err != nil {
			return err
		}
		s.audit = append(s.audit, quarantined...)
	}
	return s.ports.Recorder.RecordChanges(ctx, s.audit...)
}

// saveQuarantine stores the entries that an import has added, with their events, and returns them
// for the audit log.
func (m *Mover) saveQuarantine(ctx context.Context, l *registry.Lineage) (added []audit.Change, err error) {
	entries, prior := l.CarriedQuarantine()
	for _, q := range entries {
		if err := m.ports.Quarantine.Add(ctx, q, nil); err != nil {
			return nil, err
		}
		if err := m.ports.Events.RecordQuarantined(ctx, q); err != nil {
			return nil, err
		}
		added = append(added, registry.NewQuarantineChange(q))
	}
	if len(prior) == 0 {
		return added, nil
	}
	return added, m.ports.Quarantine.SetPrior(ctx, l.Name(), prior)
}

// errDryRun rolls back a transaction that only tests whether a commit is possible.
var errDryRun = errors.New("a dry run is rolled back")

// removeRefused refuses the records of a server that the store refuses, as those that conflict with
// another server, and returns the rest. It stores each record alone and rolls that back.
func (m *Mover) removeRefused(
	ctx context.Context, batch []candidate,
) (rest []candidate, outcomes []Outcome, err error) {
	for _, c := range batch {
		_, err := m.commit(ctx, [][]candidate{{c}}, errDryRun)
		switch {
		case errors.Is(err, errDryRun):
			rest = append(rest, c)
		case isRefused(err):
			outcomes = append(outcomes, c.newOutcome(Refused, Reason(err)))
		default:
			return nil, outcomes, err
		}
	}
	return rest, outcomes, nil
}
