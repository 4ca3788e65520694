package publish

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/browse"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/serverstore"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// decision changes a lineage and returns the releases to answer with.
type decision func(l *registry.Lineage, now time.Time) ([]registry.Release, error)

// change is what is decided about a server.
type change struct {
	name registry.Name
	// version is the one that the change is about; the zero value is all of them.
	version registry.Version
	// document is the new one of that version; nil = it keeps its own.
	document  *registry.Document
	condition Condition // nil always holds
	decide    decision
	room      Room // nil = the answer is always small
}

func (p *Publisher) publish(ctx context.Context, act *authority.Act, c Condition, doc registry.Document) (registry.Record, error) {
	return p.commitOne(ctx, act, change{
		name: doc.Name(), version: doc.Version(), document: &doc, condition: c,
		decide: one(func(l *registry.Lineage, now time.Time) (registry.Release, error) {
			return l.Publish(doc.Version(), now)
		}),
	})
}

func (p *Publisher) replace(ctx context.Context, act *authority.Act, c Condition, doc registry.Document) (registry.Record, error) {
	return p.commitOne(ctx, act, change{
		name: doc.Name(), version: doc.Version(), document: &doc, condition: c,
		decide: one(func(l *registry.Lineage, now time.Time) (registry.Release, error) {
			return l.Replace(doc.Version(), now)
		}),
	})
}

func (p *Publisher) delete(ctx context.Context, act *authority.Act, c Condition, of registry.Release) (registry.Record, error) {
	return p.commitOne(ctx, act, change{
		name: of.Name, version: of.Version, condition: c,
		decide: one(func(l *registry.Lineage, now time.Time) (registry.Release, error) { return l.Delete(of.Version, now) }),
	})
}

func (p *Publisher) setStatus(
	ctx context.Context, act *authority.Act, c Condition, of registry.Release, u registry.StatusUpdate,
) (registry.Record, error) {
	return p.commitOne(ctx, act, change{
		name: of.Name, version: of.Version, condition: c,
		decide: one(func(l *registry.Lineage, now time.Time) (registry.Release, error) {
			return l.SetStatus(of.Version, u, now)
		}),
	})
}

func (p *Publisher) setStatusAll(ctx context.Context, act *authority.Act, c change, u registry.StatusUpdate) (browse.History, error) {
	c.decide = func(l *registry.Lineage, now time.Time) ([]registry.Release, error) { return l.SetStatusAll(u, now) }
	var changed browse.History
	err := p.commit(transaction.Long(ctx), act, c, func(ctx context.Context, decided []registry.Release) error {
		var err error
		if changed, err = browse.SomeVersions(ctx, p.ports.Reader, c.name, decided); err != nil || c.room == nil {
			return err
		}
		return c.room(changed)
	})
	return changed, err
}

// one returns the decision about one version.
func one(decide func(*registry.Lineage, time.Time) (registry.Release, error)) decision {
	return func(l *registry.Lineage, now time.Time) ([]registry.Release, error) {
		r, err := decide(l, now)
		return []registry.Release{r}, err
	}
}

// commitOne commits a change of one version and returns it with its document.
func (p *Publisher) commitOne(ctx context.Context, act *authority.Act, c change) (registry.Record, error) {
	var record registry.Record
	err := p.commit(ctx, act, c, func(ctx context.Context, decided []registry.Release) error {
		record.Release = decided[0]
		if c.document != nil {
			record.Document = c.document.Bytes()
			return nil
		}
		stored, err := p.ports.Reader.Version(ctx, c.name, c.version, true)
		record.Document = stored.Document
		return lost(err)
	})
	return record, err
}

// commit makes one decision about a server, whose other writers wait
// meanwhile, and stores it with its audit act or not at all. prepare is called
// with what was decided, before it is committed: it reads what the answer needs.
func (p *Publisher) commit(
	ctx context.Context, act *authority.Act, c change, prepare func(ctx context.Context, decided []registry.Release) error,
) error {
	return p.ports.Transactions.Atomically(ctx, func(ctx context.Context) error {
		releases, err := p.ports.Writer.Lock(ctx, c.name)
		if err != nil {
			return err
		}
		lineage := registry.NewLineage(c.name, releases)
		decided, refusal := c.decide(lineage, p.ports.Clock.Now())
		// What is missing is not found, whatever is required of it; any other
		// refusal comes after the condition.
		if c.condition != nil && !fault.Is(refusal, fault.NotFound) {
			if err := p.holds(ctx, c); err != nil {
				return err
			}
		}
		if refusal != nil {
			return refusal
		}
		if err := p.ports.Writer.Save(ctx, changesOf(lineage, c.document)); err != nil {
			return err
		}
		if err := prepare(ctx, decided); err != nil {
			return err
		}
		return p.ports.Authority.Record(ctx, *act)
	})
}

// holds returns fault.Stale when the condition of a change does not hold for
// what is stored.
func (p *Publisher) holds(ctx context.Context, c change) error {
	if c.version == (registry.Version{}) {
		return p.holdsForAll(ctx, c.condition, c.name)
	}
	return p.holdsFor(ctx, c.condition, registry.Release{Name: c.name, Version: c.version})
}

func changesOf(l *registry.Lineage, doc *registry.Document) []serverstore.Change {
	var changes []serverstore.Change
	for _, r := range l.Changes() {
		c := serverstore.Change{Release: r}
		if doc != nil && r.Version == doc.Version() {
			c.Document, c.Remotes = doc.Bytes(), doc.Remotes()
		}
		changes = append(changes, c)
	}
	return changes
}

// lost keeps a version that was locked and is not there from being taken for
// one that the caller asked for in vain.
func lost(err error) error {
	if fault.Is(err, fault.NotFound) {
		return fault.Wrap(fault.Internal, "", "a locked version has no document", err)
	}
	return err
}
