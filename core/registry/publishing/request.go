package publishing

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/change"
	"github.com/tollgate-dev/tollgate/core/registry/permit"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

// Ask submits the document of a server that a person wants, which read returns. It waits for a
// reviewer also where documents need no review, and no rule approves it. The person needs no grant.
// The errors are those of Publish, and fault.Conflict if a document of the version waits already.
func (p *Publisher) Ask(
	ctx context.Context, who authority.Caller, r review.Request, read func(context.Context) ([]byte, error),
) (registry.ReviewID, error) {
	if p.config.WritesOff {
		return "", errWritesOff("publishing")
	}
	act, err := p.begin(ctx, who, authority.Act{Action: actRequest, Note: r.Reason})
	if err != nil {
		return "", err
	}
	id, err := p.ask(ctx, &act, r, read)
	return id, permit.Refuse(ctx, p.ports.Acts, act, err)
}

// ask reads and submits a document, and adds the server, the version and a warning to act.
func (p *Publisher) ask(
	ctx context.Context, act *authority.Act, r review.Request, read func(context.Context) ([]byte, error),
) (registry.ReviewID, error) {
	if err := act.Caller.RequireAction(registry.ActionPublish); err != nil {
		return "", err
	}
	if _, err := act.Caller.RequireWriter(); err != nil {
		return "", err
	}
	body, err := read(ctx)
	if err != nil {
		return "", err
	}
	draft, err := registry.ParseDraft(body)
	if err != nil {
		return "", err
	}
	act.ServerName, act.Version = registry.Clip(draft.Name()), registry.Clip(draft.Version())
	if err := p.checkReserved(draft.Name()); err != nil {
		return "", err
	}
	if err := p.checkChangeable(ctx, Target{draft.Name(), draft.Version()}, nil); err != nil {
		return "", err
	}
	s, err := p.verifyDraft(ctx, act, draft)
	if err != nil {
		return "", err
	}
	return p.commitRequest(ctx, act, s, r)
}

// commitRequest stores a review of a document that a person wants, together with its audit act.
func (p *Publisher) commitRequest(
	ctx context.Context, act *authority.Act, s submission, r review.Request,
) (registry.ReviewID, error) {
	var id registry.ReviewID
	err := change.Commit(ctx, p.ports.Ports, s.document.Name(),
		func(ctx context.Context, l change.Server) (change.Decision, error) {
			wanted, err := p.decideRequest(ctx, act.Caller, s, l)
			if err != nil {
				return change.Decision{}, err
			}
			wanted.Request = r
			id = wanted.ID
			done := *act
			done.Review = id
			return change.Decision{
				Store: func(ctx context.Context) error {
					if err := p.ports.Writer.CheckRemotes(ctx, s.document.Name(), s.document.Remotes()); err != nil {
						return err
					}
					return p.ports.Reviews.Add(ctx, wanted, min(p.config.PendingMax, review.MaxRequests))
				},
				Announce: func(ctx context.Context) error {
					return reviewing.RecordSubmitted(ctx, p.ports.Events, p.ports.Reader, wanted)
				},
				Act: done,
			}, nil
		})
	return id, err
}

// decideRequest returns the review of a document that a person wants. It does not take the place of
// one that waits: that may be somebody else's.
func (p *Publisher) decideRequest(
	ctx context.Context, who authority.Caller, s submission, l change.Server,
) (review.Review, error) {
	name, version := s.document.Name(), s.document.Version()
	switch waiting, err := p.findPending(ctx, name, version); {
	case err != nil:
		return review.Review{}, err
	case waiting != nil:
		return review.Review{}, fault.Newf(fault.Conflict, "version %s of %s waits for review already", version, name)
	}
	now := p.ports.Clock.Now()
	_, kind, err := s.decide(l.Lineage, nil, now)
	if err != nil {
		return review.Review{}, err
	}
	by, err := p.submitter(ctx, who, name)
	return p.newReview(by, s, kind, now), err
}
