package reviewing

import (
	"context"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/mirror"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// mirrored is the document of an approved review that a mirror submitted.
type mirrored struct {
	mirror   mirror.Name
	document registry.Document
	at       time.Time
}

// serveMirrored stores the document of an approved review that a mirror submitted, with the status
// and the time of publication that the other registry gives it, and returns its release. It returns
// fault.Conflict for a version in quarantine, and for one that the mirror does not have any more.
func (s *Service) serveMirrored(
	ctx context.Context, l *registry.Lineage, r review.Review, m mirrored,
) (*registry.Release, error) {
	tracked, err := s.ports.Mirrored.OfServers(ctx, m.mirror, []registry.Name{r.Name})
	if err != nil {
		return nil, err
	}
	all, err := s.ports.Mirrors.List(ctx)
	if err != nil {
		return nil, err
	}
	version := slices.IndexFunc(tracked, func(t mirror.Tracked) bool { return t.Review == r.ID })
	source := slices.IndexFunc(all, func(x mirror.Mirror) bool { return x.Name == m.mirror })
	if version < 0 || source < 0 {
		return nil, fault.Newf(
			fault.Conflict, "the mirror %s does not have this version any more: reject the review", m.mirror)
	}
	origin := registry.Origin{Mirror: string(m.mirror), URL: all[source].URL.Public(), FetchedAt: r.SubmittedAt}
	_, errs := l.Mirror(origin, []registry.Upstream{tracked[version].Upstream(true)}, m.at)
	if errs[0] != nil {
		return nil, conflictOf(l, errs[0])
	}
	changes := registrystore.ChangesOf(l, &m.document)
	i := slices.IndexFunc(changes, func(c registrystore.Change) bool { return c.Release.Version == r.Version })
	return &changes[i].Release, s.ports.Writer.Save(ctx, changes)
}

// conflictOf returns fault.Conflict in place of fault.Forbidden: the decider may change the server,
// but something else must be done before.
func conflictOf(l *registry.Lineage, err error) error {
	switch {
	case !fault.Is(err, fault.Forbidden):
		return err
	case l.Origin() != registry.Origin{}:
		return fault.Newf(fault.Conflict, "%s: reject the review", fault.PublicMessage(err))
	}
	return fault.Newf(fault.Conflict, "%s; release it first", fault.PublicMessage(err))
}
