package publishing

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/event"
	"github.com/tollgate-dev/tollgate/core/registry/notifying"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/secrets"
)

// Outcome is what became of a document.
type Outcome struct {
	registry.Record

	// Pending is the review that the document waits for; empty if the document is served.
	Pending review.ID
}

// submission is a document that keeps all rules of documents.
type submission struct {
	document  registry.Document
	checks    []review.Check
	replaces  bool      // by Replace; else by Publish
	condition Condition // optional
}

// commitDocument stores a document together with its audit act, or neither. Other changes of the
// server wait until then. With review, the document waits for a person unless a rule approves it.
func (p *Publisher) commitDocument(ctx context.Context, act *authority.Act, s submission) (Outcome, error) {
	var outcome Outcome
	name, version := s.document.Name(), s.document.Version()
	err := p.ports.Transactions.Atomically(ctx, func(ctx context.Context) error {
		releases, err := p.ports.Writer.Lock(ctx, name)
		if err != nil {
			return err
		}
		waiting, err := p.findPending(ctx, name, version)
		if err != nil {
			return err
		}
		quarantined, err := p.ports.Quarantine.Entries(ctx, name)
		if err != nil {
			return err
		}
		lineage, now := registry.NewLineage(name, releases, quarantined...), p.ports.Clock.Now()
		taken, refusal := p.takeOver(ctx, act.Caller, s, lineage)
		var release registry.Release
		var kind review.Kind
		if refusal == nil {
			release, kind, refusal = s.decide(lineage, waiting, now)
		}
		if err := p.checkRefusal(ctx, change{name, version, s.condition}, refusal); err != nil {
			return err
		}
		outcome = Outcome{Record: registry.Record{Release: release, Document: s.document.Bytes()}}
		by, err := p.submitter(ctx, act.Caller, name)
		if err != nil {
			return err
		}
		r, err := p.submit(ctx, by, s, kind, now)
		if err != nil {
			return err
		}
		if err := p.supersede(ctx, waiting, now); err != nil {
			return err
		}
		if r != nil && r.State == review.Pending {
			outcome.Pending = r.ID
			if taken != nil {
				releases = nil
			}
			outcome.Release = pendingRelease(releases, release)
			if err := p.ports.Writer.CheckRemotes(ctx, name, s.document.Remotes()); err != nil {
				return err
			}
		} else if err := p.ports.Ender.Publish(ctx, lineage, &s.document, taken, by.People()...); err != nil {
			return err
		}
		if err := p.recordEvents(ctx, &outcome, kind, r); err != nil {
			return err
		}
		return p.recordSubmission(ctx, *act, r)
	})
	return outcome, err
}

// recordEvents records the events of a document that is served; one that waits for review has none
// (contract C-50). r is the review by which a rule approved it, if there is one.
func (p *Publisher) recordEvents(ctx context.Context, o *Outcome, kind review.Kind, r *review.Review) error {
	if o.Pending != "" {
		return nil
	}
	if r != nil {
		if err := p.ports.Events.RecordReview(ctx, event.Approved, *r); err != nil {
			return err
		}
	}
	return p.ports.Events.RecordVersions(ctx, notifying.TypeOf(kind), o.Record)
}

// recordSubmission stores the review of a submission, if there is one, and the act.
func (p *Publisher) recordSubmission(ctx context.Context, act authority.Act, r *review.Review) error {
	if r != nil {
		act.Review, act.Rule = r.ID, r.Rule
		if err := p.ports.Reviews.Add(ctx, *r, p.config.PendingMax); err != nil {
			return err
		}
	}
	return p.ports.Acts.Record(ctx, act)
}

// takeOver ends what a mirror has of the server, if the caller wins its name by a publication; nil
// without a mirror.
func (p *Publisher) takeOver(ctx context.Context, c authority.Caller, s submission, l *registry.Lineage) (*registry.Takeover, error) {
	if s.replaces || l.Origin() == (registry.Origin{}) {
		return nil, nil
	}
	wins, err := p.winsName(ctx, c, s.document.Name())
	if err != nil || !wins {
		return nil, err
	}
	return l.TakeOver(s.document.Version(), p.ports.Clock.Now())
}

// decide changes the lineage as the submission would if it needed no review, and returns the release
// of its version. waiting is the pending review of the version; nil without one.
func (s *submission) decide(l *registry.Lineage, waiting *review.Review, now time.Time) (registry.Release, review.Kind, error) {
	version := s.document.Version()
	// A document that was never served is replaced by another one that was never served.
	if s.replaces && (waiting == nil || l.Has(version)) {
		r, err := l.Replace(version, now)
		return r, review.Replacement, err
	}
	kind := review.NewVersion
	if l.IsEmpty() {
		kind = review.NewServer
	}
	r, err := l.Publish(version, now)
	return r, kind, err
}

// pendingRelease returns the release of a document that is not served: the present one of its
// version, or that of a new version, which is not the latest.
func pendingRelease(releases []registry.Release, decided registry.Release) registry.Release {
	for _, r := range releases {
		if r.Version == decided.Version {
			return r
		}
	}
	decided.Latest = false
	return decided
}

// submit returns the review of a submission, which a rule may have approved; nil if documents need
// no review.
func (p *Publisher) submit(ctx context.Context, by review.Submitter, s submission, kind review.Kind, now time.Time) (*review.Review, error) {
	if !p.config.Review {
		return nil, nil
	}
	r := review.Review{
		ID: secrets.NewUUID[review.ID](p.ports.Entropy), Name: s.document.Name(), Version: s.document.Version(),
		State: review.Pending, Kind: kind, Document: s.document.Bytes(), Checks: s.checks,
		Submitter: by, SubmittedAt: now.UTC().Truncate(time.Microsecond),
	}
	r, err := reviewing.Approver{Rules: p.ports.Rules, Reader: p.ports.Reader}.Approve(ctx, r, s.document, now)
	return &r, err
}

// submitter returns the caller as the submitter of a document of a server.
func (p *Publisher) submitter(ctx context.Context, c authority.Caller, name registry.Name) (review.Submitter, error) {
	proved := c.Publisher()
	if proved == nil {
		person, err := c.Person()
		return review.Submitter{Key: string(person)}, err
	}
	by := review.Submitter{Key: string(proved.Method) + ":" + proved.Subject}
	var ids []publisher.PolicyID
	for _, permission := range proved.Permissions {
		if permission.Policy != "" && permission.Allows(publisher.Publish, name) {
			ids = append(ids, permission.Policy)
		}
	}
	if len(ids) == 0 {
		return by, nil
	}
	by.Policy = ids[0]
	var err error
	by.Makers, err = p.ports.Policies.Makers(ctx, ids)
	return by, err
}

// findPending returns the pending review of a version; nil without one.
func (p *Publisher) findPending(ctx context.Context, name registry.Name, version registry.Version) (*review.Review, error) {
	r, err := p.ports.Reviews.PendingOf(ctx, name, version)
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}
	return &r, err
}

// supersede ends the pending review of a version, if there is one.
func (p *Publisher) supersede(ctx context.Context, waiting *review.Review, now time.Time) error {
	if waiting == nil {
		return nil
	}
	return reviewing.Supersede(ctx, p.ports.Reviews, p.ports.Reader, *waiting, now)
}

// requirePending returns fault.NotFound unless a document of the version, which is not served, waits
// for review.
func (p *Publisher) requirePending(ctx context.Context, name registry.Name, version registry.Version) error {
	waiting, err := p.findPending(ctx, name, version)
	if err == nil && (waiting == nil || waiting.Kind == review.Replacement) {
		return errNotFound()
	}
	return err
}
