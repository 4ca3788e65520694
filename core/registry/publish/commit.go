package publish

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/serverstore"
)

// decision changes a lineage and returns the releases to answer with.
type decision func(l *registry.Lineage, now time.Time) ([]registry.Release, error)

func (p *Publisher) publish(ctx context.Context, act *authority.Act, doc registry.Document) (registry.Record, error) {
	return p.commitOne(ctx, act, doc.Name(), &doc, func(l *registry.Lineage, now time.Time) (registry.Release, error) {
		return l.Publish(doc.Version(), now)
	})
}

func (p *Publisher) replace(ctx context.Context, act *authority.Act, doc registry.Document) (registry.Record, error) {
	return p.commitOne(ctx, act, doc.Name(), &doc, func(l *registry.Lineage, now time.Time) (registry.Release, error) {
		return l.Replace(doc.Version(), now)
	})
}

func (p *Publisher) delete(ctx context.Context, act *authority.Act, name registry.Name, version registry.Version) (registry.Record, error) {
	return p.commitOne(ctx, act, name, nil, func(l *registry.Lineage, now time.Time) (registry.Release, error) {
		return l.Delete(version, now)
	})
}

func (p *Publisher) setStatus(ctx context.Context, act *authority.Act, of registry.Release, u registry.StatusUpdate) (registry.Record, error) {
	return p.commitOne(ctx, act, of.Name, nil, func(l *registry.Lineage, now time.Time) (registry.Release, error) {
		return l.SetStatus(of.Version, u, now)
	})
}

func (p *Publisher) setStatusAll(ctx context.Context, act *authority.Act, name registry.Name, u registry.StatusUpdate) ([]registry.Record, error) {
	return p.commit(ctx, act, name, nil, func(l *registry.Lineage, now time.Time) ([]registry.Release, error) {
		return l.SetStatusAll(u, now)
	})
}

func (p *Publisher) commitOne(
	ctx context.Context, act *authority.Act, name registry.Name, doc *registry.Document,
	decide func(*registry.Lineage, time.Time) (registry.Release, error),
) (registry.Record, error) {
	records, err := p.commit(ctx, act, name, doc, func(l *registry.Lineage, now time.Time) ([]registry.Release, error) {
		r, err := decide(l, now)
		return []registry.Release{r}, err
	})
	if err != nil {
		return registry.Record{}, err
	}
	return records[0], nil
}

// commit makes one decision about a server, whose other writers wait
// meanwhile, and stores it with its audit act or not at all. doc is the
// document of the version that the decision is about, nil when it keeps its
// own.
func (p *Publisher) commit(
	ctx context.Context, act *authority.Act, name registry.Name, doc *registry.Document, decide decision,
) ([]registry.Record, error) {
	var records []registry.Record
	err := p.ports.Transactions.Atomically(ctx, func(ctx context.Context) error {
		releases, err := p.ports.Writer.Lock(ctx, name)
		if err != nil {
			return err
		}
		lineage := registry.NewLineage(name, releases)
		decided, err := decide(lineage, p.ports.Clock.Now())
		if err != nil {
			return err
		}
		if err := p.ports.Writer.Save(ctx, changesOf(lineage, doc)); err != nil {
			return err
		}
		if records, err = p.withDocuments(ctx, decided, doc); err != nil {
			return err
		}
		return p.ports.Authority.Record(ctx, *act)
	})
	return records, err
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

// withDocuments adds the documents to releases of one server.
func (p *Publisher) withDocuments(ctx context.Context, releases []registry.Release, doc *registry.Document) ([]registry.Record, error) {
	if doc != nil {
		return []registry.Record{{Release: releases[0], Document: doc.Bytes()}}, nil
	}
	if len(releases) == 1 {
		r := releases[0]
		stored, err := p.ports.Reader.Version(ctx, r.Name, r.Version, true)
		return []registry.Record{{Release: r, Document: stored.Document}}, lost(err)
	}
	all, err := p.ports.Reader.Versions(ctx, serverstore.VersionsQuery{Name: releases[0].Name, Deleted: true})
	if err != nil {
		return nil, err
	}
	documents := make(map[registry.Version][]byte, len(all.Records))
	for _, stored := range all.Records {
		documents[stored.Version] = stored.Document
	}
	records := make([]registry.Record, 0, len(releases))
	for _, r := range releases {
		records = append(records, registry.Record{Release: r, Document: documents[r.Version]})
	}
	return records, nil
}

// lost keeps a version that was locked and is not there from being taken for
// one that the caller asked for in vain.
func lost(err error) error {
	if fault.Is(err, fault.NotFound) {
		return fault.Wrap(fault.Internal, "", "a locked version has no document", err)
	}
	return err
}
