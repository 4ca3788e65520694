package publishing

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/change"
	"github.com/tollgate-dev/tollgate/core/registry/event"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

// target is what a change is about.
type target struct {
	name registry.Name
	// version is the version to change; the zero value means all versions.
	version   registry.Version
	condition Condition // optional
}

// decision changes a lineage and returns the releases of the answer.
type decision func(l *registry.Lineage, now time.Time) ([]registry.Release, error)

// commitRelease commits a change of the status of one version and returns its record. decide
// changes the lineage and returns the release of the version.
func (p *Publisher) commitRelease(
	ctx context.Context, act *authority.Act, c target,
	decide func(l *registry.Lineage, now time.Time) (registry.Release, error),
) (registry.Record, error) {
	var record registry.Record
	one := func(l *registry.Lineage, now time.Time) ([]registry.Release, error) {
		r, err := decide(l, now)
		return []registry.Release{r}, err
	}
	err := p.commit(ctx, act, c, one, func(ctx context.Context, decided []registry.Release) error {
		record.Release = decided[0]
		stored, err := p.ports.Reader.Version(ctx, c.name, c.version, true)
		if err != nil {
			return internalIfNotFound(err)
		}
		record.Document = stored.Document
		return p.ports.Events.RecordVersions(ctx, event.Status, record)
	})
	return record, err
}

// commit decides a change of a server and stores it together with its audit act, or neither. Other
// changes of the server wait until then. prepare is called with the decided releases before the
// commit; it reads what the answer needs, and records the event.
func (p *Publisher) commit(
	ctx context.Context, act *authority.Act, c target, decide decision,
	prepare func(ctx context.Context, decided []registry.Release) error,
) error {
	return change.Commit(ctx, p.ports.Ports, c.name,
		func(ctx context.Context, s change.Server) (change.Decision, error) {
			decided, refusal := decide(s.Lineage, p.ports.Clock.Now())
			stored := *act
			if refusal == nil {
				stored.Changed = registry.StatusChangeOf(s.Releases, decided)
			}
			if act.Action == actStatus && refusal == nil {
				stored.Status, stored.StatusMessage = string(decided[0].Status), decided[0].StatusMessage
			}
			return change.Decision{
				Store:    func(ctx context.Context) error { return s.Save(ctx, p.ports.Writer) },
				Announce: func(ctx context.Context) error { return prepare(ctx, decided) },
				Act:      stored,
			}, p.checkRefusal(ctx, c, refusal)
		})
}

// checkRefusal returns the refusal of a change, or fault.Stale if its condition does not hold. A
// missing version is fault.NotFound, and one in quarantine fault.Forbidden, whatever the condition
// is; every other refusal comes after the condition.
func (p *Publisher) checkRefusal(ctx context.Context, c target, refusal error) error {
	if c.condition != nil && !fault.Is(refusal, fault.NotFound) && !fault.Is(refusal, fault.Forbidden) {
		if err := p.checkChangeCondition(ctx, c); err != nil {
			return err
		}
	}
	return refusal
}

// checkChangeCondition returns fault.Stale when the condition of a change does not hold for what is
// stored.
func (p *Publisher) checkChangeCondition(ctx context.Context, c target) error {
	if c.version == (registry.Version{}) {
		return p.checkConditionForAll(ctx, c.condition, c.name)
	}
	return p.checkCondition(ctx, c.condition, registry.Release{Name: c.name, Version: c.version})
}

// internalIfNotFound returns fault.Internal in place of fault.NotFound: a version that was locked
// must have a document.
func internalIfNotFound(err error) error {
	if fault.Is(err, fault.NotFound) {
		return fault.Wrap(fault.Internal, "a version that was locked for a change has no document", err)
	}
	return err
}
