package transfer

import (
	"bytes"
	"context"
	"errors"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/serverstore"
)

// maxRounds is how often a batch is tried again without the records that stood
// against another server's.
const maxRounds = 5

// store stores records of one server that are not there yet, all of them in
// one transaction, so that their own times stay.
func (m *Mover) store(ctx context.Context, batch []candidate) ([]Outcome, error) {
	rest, outcomes, err := m.sift(ctx, batch)
	for round := 0; err == nil && len(rest) > 0; round++ {
		var done []Outcome
		done, err = m.commit(ctx, rest, nil)
		if err == nil {
			return append(outcomes, done...), nil
		}
		if !fault.Is(err, fault.Conflict) || round == maxRounds {
			break
		}
		rest, done, err = m.probe(ctx, rest)
		outcomes = append(outcomes, done...)
	}
	return outcomes, err
}

// sift parts the records from those whose versions are here already. It locks
// nothing, so that an import that has nothing to do is in nobody's way.
func (m *Mover) sift(ctx context.Context, batch []candidate) (rest []candidate, outcomes []Outcome, err error) {
	for _, c := range batch {
		o, err := m.compare(ctx, c)
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

// compare tells how a record compares with the version that is here, or
// returns fault.NotFound.
func (m *Mover) compare(ctx context.Context, c candidate) (Outcome, error) {
	stored, err := m.ports.Reader.Version(ctx, c.release.Name, c.release.Version, true)
	if err != nil {
		return Outcome{}, err
	}
	return c.beside(stored.Document, stored.Release), nil
}

// beside compares a record with the stored version of its name. A version is published once, ever
// (contract R-25), and its status is changed here.
func (c candidate) beside(document []byte, here registry.Release) Outcome {
	switch {
	case !bytes.Equal(document, c.document.Bytes()):
		return c.outcome(Refused, "the version is here already with another document, and a version is published once")
	case here.Status != c.release.Status:
		return c.outcome(Skipped, "is "+string(here.Status)+" here and "+string(c.release.Status)+" in the import")
	}
	return c.outcome(Skipped, "")
}

func (c candidate) outcome(v Verdict, reason string) Outcome {
	return Outcome{
		Verdict: v, Origin: c.origin, Reason: reason,
		Name: c.release.Name.String(), Version: c.release.Version.String(),
	}
}

// commit stores records in one transaction. It returns atEnd, and stores
// nothing, when that is set.
func (m *Mover) commit(ctx context.Context, batch []candidate, atEnd error) ([]Outcome, error) {
	var outcomes []Outcome
	err := m.ports.Transactions.Atomically(ctx, func(ctx context.Context) error {
		var err error
		if outcomes, err = m.decide(ctx, batch); err != nil {
			return err
		}
		return atEnd
	})
	return outcomes, err
}

// decide locks the server of the records and saves those that are not there.
func (m *Mover) decide(ctx context.Context, batch []candidate) ([]Outcome, error) {
	name := batch[0].release.Name
	releases, err := m.ports.Writer.Lock(ctx, name)
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
		case here[v]: // since it was sifted
			o, err := m.compare(ctx, c)
			if err != nil {
				return nil, err
			}
			outcomes = append(outcomes, o)
		case twice:
			outcomes = append(outcomes, c.beside(before.document.Bytes(), before.release))
		default:
			first[v] = c
			fresh = append(fresh, c)
		}
	}
	done, err := m.save(ctx, registry.NewLineage(name, releases), fresh)
	return append(outcomes, done...), err
}

// save adds records to the lineage and stores its changes.
func (m *Mover) save(ctx context.Context, l *registry.Lineage, fresh []candidate) ([]Outcome, error) {
	releases := make([]registry.Release, 0, len(fresh))
	documents := make(map[registry.Version]registry.Document, len(fresh))
	for _, c := range fresh {
		releases = append(releases, c.release)
		documents[c.release.Version] = c.document
	}
	_, errs := l.Import(releases, m.ports.Clock.Now())
	outcomes := make([]Outcome, 0, len(fresh))
	var taken []authority.ImportedVersion
	for i, c := range fresh {
		if errs[i] != nil {
			outcomes = append(outcomes, c.outcome(Refused, sentence(errs[i])))
			continue
		}
		outcomes = append(outcomes, c.outcome(Taken, ""))
		taken = append(taken, authority.ImportedVersion{ServerName: c.release.Name.String(), Version: c.release.Version.String()})
	}
	var changes []serverstore.Change
	for _, r := range l.Changes() {
		change := serverstore.Change{Release: r}
		if doc, ok := documents[r.Version]; ok {
			change.Document, change.Remotes = doc.Bytes(), doc.Remotes()
		}
		changes = append(changes, change)
	}
	if len(changes) == 0 {
		return outcomes, nil
	}
	if err := m.ports.Writer.Save(ctx, changes); err != nil {
		return nil, err
	}
	return outcomes, m.ports.Trail.RecordImport(ctx, taken...)
}

// errProbe takes a transaction back that was only to see whether it would pass.
var errProbe = errors.New("a probe is taken back")

// probe finds the records that stand against another server's, by storing each
// alone and taking it back. They are refused.
func (m *Mover) probe(ctx context.Context, batch []candidate) (rest []candidate, outcomes []Outcome, err error) {
	for _, c := range batch {
		_, err := m.commit(ctx, []candidate{c}, errProbe)
		switch {
		case errors.Is(err, errProbe):
			rest = append(rest, c)
		case fault.Is(err, fault.Conflict):
			outcomes = append(outcomes, c.outcome(Refused, sentence(err)))
		default:
			return nil, outcomes, err
		}
	}
	return rest, outcomes, nil
}
