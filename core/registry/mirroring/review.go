package mirroring

import (
	"context"
	"math"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/event"
	"github.com/tollgate-dev/tollgate/core/registry/mirror"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
	"github.com/tollgate-dev/tollgate/ports/secrets"
)

// submit submits the document of a version for review. It reports whether a rule approved it; else
// it returns the ID of the pending review.
func (c *committer) submit(
	ctx context.Context, v *candidate, l *registry.Lineage,
) (approved bool, id registry.ReviewID, err error) {
	own := func(r review.Review) bool { return r.Submitter.Key == c.mirror.Submitter() }
	if _, err := c.supersedePending(ctx, v.Name, v.Version, own); err != nil {
		return false, "", err
	}
	kind := review.Replacement
	switch {
	case l.IsEmpty():
		kind = review.NewServer
	case !l.Has(v.Version):
		kind = review.NewVersion
	}
	now := c.now()
	r, err := c.ports.Approver.Approve(ctx, review.Review{
		ID: secrets.NewUUID[registry.ReviewID](c.ports.Entropy), Name: v.Name, Version: v.Version,
		State: review.Pending, Kind: kind, Document: v.document.Bytes(),
		Submitter: review.Submitter{Key: c.mirror.Submitter()}, SubmittedAt: now,
	}, v.document, now)
	if err != nil {
		return false, "", err
	}
	// A mirror may submit a whole registry at once: the limit of what waits is for people.
	if err := c.ports.Reviews.Add(ctx, r, math.MaxInt32); err != nil {
		return false, "", err
	}
	if r.State == review.Approved {
		return true, "", c.ports.Events.RecordReview(ctx, event.Approved, r)
	}
	c.outcomes = append(c.outcomes, Outcome{Verdict: Submitted, Name: v.Name.String(), Version: v.Version.String()})
	change := mirror.NewVersionChange(string(Submitted), c.mirror.Name, registry.Release{Name: v.Name, Version: v.Version})
	change.Details["review"] = audit.Text(r.ID)
	c.audit = append(c.audit, change)
	return false, r.ID, reviewing.RecordSubmitted(ctx, c.ports.Events, c.ports.Reader, r)
}

// waitsHere reports whether a document of a version that was submitted here waits for review: it
// comes before what a mirror has.
func (c *committer) waitsHere(ctx context.Context, v *candidate) (bool, error) {
	if !c.needsReview() {
		return false, nil
	}
	waiting, err := c.ports.Reviews.PendingOf(ctx, v.Name, v.Version)
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	_, mirrored := mirror.OfSubmitter(waiting.Submitter.Key)
	return err == nil && !mirrored, err
}

// supersede ends the pending review of a version that the mirror has submitted. It reports whether
// there was one.
func (o *Operator) supersede(ctx context.Context, t mirror.Tracked) (bool, error) {
	if t.Review == "" {
		return false, nil
	}
	return o.supersedePending(ctx, t.Name, t.Version, func(r review.Review) bool { return r.ID == t.Review })
}

// supersedePending ends the pending review of a version if it is the mirror's own. It reports
// whether there was one.
func (o *Operator) supersedePending(
	ctx context.Context, name registry.Name, version registry.Version, own func(review.Review) bool,
) (bool, error) {
	waiting, err := o.ports.Reviews.PendingOf(ctx, name, version)
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	if err != nil || !own(waiting) {
		return false, err
	}
	return true, reviewing.Supersede(ctx, o.ports.Reviews, o.ports.Reader, waiting, o.now())
}
