package publishing

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/announce"
	"github.com/tollgate-dev/tollgate/core/registry/change"
	"github.com/tollgate-dev/tollgate/core/registry/event"
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
	Pending registry.ReviewID
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
	err := change.Commit(ctx, p.ports.Ports, s.document.Name(),
		func(ctx context.Context, l change.Server) (change.Decision, error) {
			d, err := p.decideDocument(ctx, act.Caller, s, l)
			if outcome = d.outcome; err != nil {
				return change.Decision{}, err
			}
			done := *act
			if d.review != nil {
				done.Review, done.Rule = d.review.ID, d.review.Rule
			}
			return change.Decision{
				Store:    func(ctx context.Context) error { return p.storeDocument(ctx, s, l, d) },
				Announce: func(ctx context.Context) error { return p.recordEvents(ctx, d) },
				Act:      done,
			}, nil
		})
	return outcome, err
}

// documentDecision is what becomes of a document.
type documentDecision struct {
	outcome Outcome
	kind    review.Kind
	by      review.Submitter
	review  *review.Review     // of the document; nil if documents need no review
	waiting *review.Review     // the pending one of the version, which ends; nil without one
	taken   *registry.Takeover // what ends of a mirror; nil without one
	at      time.Time
}

// decideDocument decides what becomes of a document.
func (p *Publisher) decideDocument(
	ctx context.Context, who authority.Caller, s submission, l change.Server,
) (d documentDecision, err error) {
	name, version := s.document.Name(), s.document.Version()
	if d.waiting, err = p.findPending(ctx, name, version); err != nil {
		return d, err
	}
	d.at = p.ports.Clock.Now()
	var refusal error
	d.outcome.Document = s.document.Bytes()
	if d.taken, refusal = p.takeOver(ctx, who, s, l.Lineage); refusal == nil {
		d.outcome.Release, d.kind, refusal = s.decide(l.Lineage, d.waiting, d.at)
	}
	if err := p.checkRefusal(ctx, target{name, version, s.condition}, refusal); err != nil {
		return d, err
	}
	if d.by, err = p.submitter(ctx, who, name); err != nil {
		return d, err
	}
	d.review, err = p.submit(ctx, d.by, s, d.kind, d.at)
	if err != nil || !d.isPending() {
		return d, err
	}
	d.outcome.Pending = d.review.ID
	here := l.Releases
	if d.taken != nil {
		here = nil
	}
	d.outcome.Release = pendingRelease(here, d.outcome.Release)
	return d, nil
}

// isPending reports whether the document waits for review.
func (d *documentDecision) isPending() bool {
	return d.review != nil && d.review.State == review.Pending
}

// storeDocument stores a document that is served, or the review that it waits for.
func (p *Publisher) storeDocument(ctx context.Context, s submission, l change.Server, d documentDecision) error {
	err := p.supersede(ctx, d.waiting, d.at)
	switch {
	case err != nil:
	case d.isPending():
		err = p.ports.Writer.CheckRemotes(ctx, s.document.Name(), s.document.Remotes())
	default:
		err = p.ports.Ender.Publish(ctx, l.Lineage, &s.document, d.taken, d.by.People()...)
	}
	if err != nil || d.review == nil {
		return err
	}
	return p.ports.Reviews.Add(ctx, *d.review, p.config.PendingMax)
}

// recordEvents records the events of a document that is served, or waits for review (contract C-50).
func (p *Publisher) recordEvents(ctx context.Context, d documentDecision) error {
	if d.isPending() {
		return reviewing.RecordSubmitted(ctx, p.ports.Events, p.ports.Reader, *d.review)
	}
	if d.review != nil { // a rule approved it
		if err := p.ports.Events.RecordReview(ctx, event.Approved, *d.review); err != nil {
			return err
		}
	}
	return p.ports.Events.RecordVersions(ctx, announce.TypeOf(d.kind), d.outcome.Record)
}

// takeOver ends what a mirror has of the server, if the caller wins its name by a publication; nil
// without a mirror.
func (p *Publisher) takeOver(
	ctx context.Context, c authority.Caller, s submission, l *registry.Lineage,
) (*registry.Takeover, error) {
	if s.replaces || l.Origin() == (registry.Origin{}) {
		return nil, nil
	}
	wins, err := p.winsName(ctx, c, s.document.Name())
	if err != nil || !wins {
		return nil, err
	}
	return l.TakeOver(s.document.Version(), p.ports.Clock.Now())
}

// decide changes the lineage as the submission would if it needed no review, and returns the
// release of its version. waiting is the pending review of the version; nil without one.
func (s *submission) decide(
	l *registry.Lineage, waiting *review.Review, now time.Time,
) (registry.Release, review.Kind, error) {
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
func (p *Publisher) submit(
	ctx context.Context, by review.Submitter, s submission, kind review.Kind, now time.Time,
) (*review.Review, error) {
	if !p.config.Review {
		return nil, nil
	}
	r, err := p.ports.Approver.Approve(
		ctx, p.newReview(by, s, kind, now), s.document, now)
	return &r, err
}

// newReview returns the pending review of a submission.
func (p *Publisher) newReview(by review.Submitter, s submission, kind review.Kind, now time.Time) review.Review {
	return review.Review{
		ID: secrets.NewUUID[registry.ReviewID](p.ports.Entropy), Name: s.document.Name(), Version: s.document.Version(),
		State: review.Pending, Kind: kind, Document: s.document.Bytes(), Checks: s.checks,
		Submitter: by, SubmittedAt: now.UTC().Truncate(time.Microsecond),
	}
}

// submitter returns the caller as the submitter of a document of a server.
func (p *Publisher) submitter(ctx context.Context, c authority.Caller, name registry.Name) (review.Submitter, error) {
	proved := c.Publisher()
	if proved == nil {
		person, err := c.Person()
		return review.Submitter{Key: string(person)}, err
	}
	by := review.Submitter{Key: string(proved.Method) + ":" + proved.Subject}
	var ids []registry.PolicyID
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
func (p *Publisher) findPending(
	ctx context.Context, name registry.Name, version registry.Version,
) (*review.Review, error) {
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

// requirePending returns fault.NotFound unless a document of the version, which is not served,
// waits for review.
func (p *Publisher) requirePending(ctx context.Context, name registry.Name, version registry.Version) error {
	waiting, err := p.findPending(ctx, name, version)
	if err == nil && (waiting == nil || waiting.Kind == review.Replacement) {
		return errNotFound()
	}
	return err
}
