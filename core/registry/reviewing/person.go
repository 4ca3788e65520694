package reviewing

import (
	"context"
	"net/netip"
	"slices"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/refusal"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// PersonPorts are the dependencies of a Service. All fields are required.
type PersonPorts struct {
	Operator  *Operator
	Grants    registrystore.Grants
	Authority authority.Authority
	Notifier  authority.ReviewNotifier
}

// Service lets people read and decide reviews. Each method returns fault.Unauthenticated without a
// good token, fault.Forbidden for the token of a publisher, and fault.Unavailable when the database
// fails. It is safe for concurrent use.
type Service struct{ ports PersonPorts }

// New returns a service.
func New(p PersonPorts) *Service { return &Service{p} }

// Request is the caller of a use case.
type Request struct {
	Token   string     // the access token as it was sent; empty without one
	Address netip.Addr // of the client
}

// Authorize returns the error that every method returns for the caller.
func (s *Service) Authorize(ctx context.Context, r Request) error {
	_, err := s.identifyPerson(ctx, r)
	return err
}

// List returns a page of the reviews that the caller may decide or has submitted. It returns
// fault.Forbidden below UNVERIFIED, and fault.Invalid, with the name of the parameter, for a wrong
// parameter.
func (s *Service) List(ctx context.Context, r Request, q Query) (Page, error) {
	caller, err := s.identifyReader(ctx, r)
	if err != nil {
		return Page{}, err
	}
	patterns, err := ReviewPatterns(ctx, s.ports.Grants, registry.Holder(caller.UserID))
	if err != nil {
		return Page{}, err
	}
	return s.ports.Operator.list(ctx, q, func(selection *registrystore.ReviewQuery) {
		selection.Patterns, selection.Submitter = patterns, caller.UserID
	})
}

// Get returns a review. It returns fault.Forbidden below UNVERIFIED, fault.NotFound if there is none,
// and fault.Forbidden if the caller may not review its server and has not submitted it, also not
// through an own policy.
func (s *Service) Get(ctx context.Context, r Request, id review.ID) (review.Shown, error) {
	caller, err := s.identifyReader(ctx, r)
	if err != nil {
		return review.Shown{}, err
	}
	found, err := s.ports.Operator.find(ctx, id)
	if err != nil {
		return review.Shown{}, err
	}
	if !found.IsOwn(registry.Holder(caller.UserID)) {
		if err := s.requireGrant(ctx, caller, found.Name); err != nil {
			return review.Shown{}, err
		}
	}
	return s.ports.Operator.show(ctx, found)
}

// Approve approves a pending review, so that its document is served, and notifies its submitter.
//
// Errors, in the order of the checks: fault.NotFound, fault.Forbidden without the grant review or
// below FULL_TRUST, fault.Invalid for a comment that is too long, fault.Conflict when the review is
// not pending any more, fault.Forbidden for what the caller has submitted, fault.Conflict when the
// document cannot be served any more, for example because another server has one of its remote URLs.
func (s *Service) Approve(ctx context.Context, r Request, id review.ID, comment string) (review.Shown, error) {
	return s.decide(ctx, r, id, review.Decision{Approve: true, Comment: comment})
}

// Reject rejects a pending review and notifies its submitter. Errors as of Approve; a comment is
// required.
func (s *Service) Reject(ctx context.Context, r Request, id review.ID, comment string) (review.Shown, error) {
	return s.decide(ctx, r, id, review.Decision{Comment: comment})
}

// decide decides a review. Every refusal after the identification of the caller is recorded.
func (s *Service) decide(ctx context.Context, r Request, id review.ID, d review.Decision) (review.Shown, error) {
	caller, err := s.identifyPerson(ctx, r)
	if err != nil {
		return review.Shown{}, err
	}
	d.By = caller.UserID
	act := authority.Act{Caller: caller, Action: actReject, Review: id}
	if d.Approve {
		act.Action = actApprove
	}
	shown, err := s.decideAs(ctx, &act, d)
	if err != nil {
		return review.Shown{}, refusal.Record(ctx, s.ports.Authority, act, err)
	}
	s.ports.Notifier.NotifySubmitter(newDecisionNotice(shown.Review))
	return shown, nil
}

// decideAs decides the review of the act, and adds its server and version to the act.
func (s *Service) decideAs(ctx context.Context, act *authority.Act, d review.Decision) (review.Shown, error) {
	found, err := s.ports.Operator.find(ctx, act.Review)
	if err != nil {
		return review.Shown{}, err
	}
	act.ServerName, act.Version = found.Name.String(), found.Version.String()
	if err := s.requireGrant(ctx, act.Caller, found.Name); err != nil {
		return review.Shown{}, err
	}
	if err := s.ports.Authority.RequireFullTrust(ctx, act.Caller); err != nil {
		return review.Shown{}, err
	}
	if d.Comment, err = review.ParseComment(d.Comment, !d.Approve); err != nil {
		return review.Shown{}, err
	}
	return s.ports.Operator.decide(ctx, act.Review, d, func(ctx context.Context, _ review.Review) error {
		return s.ports.Authority.Record(ctx, *act)
	})
}

// identifyPerson returns the caller, who must be a person.
func (s *Service) identifyPerson(ctx context.Context, r Request) (authority.Caller, error) {
	caller, err := s.ports.Authority.Identify(ctx, r.Token)
	if err != nil {
		return authority.Caller{}, err
	}
	if caller.Publisher != nil {
		return authority.Caller{}, fault.New(fault.Forbidden, "the token of a publisher may only publish and change status: sign in as a person")
	}
	caller.Address = r.Address
	return caller, nil
}

// identifyReader returns the caller, who must be a person at UNVERIFIED or above: what waits is not
// public.
func (s *Service) identifyReader(ctx context.Context, r Request) (authority.Caller, error) {
	caller, err := s.identifyPerson(ctx, r)
	if err != nil {
		return authority.Caller{}, err
	}
	return caller, s.ports.Authority.RequireVerified(ctx, caller)
}

// requireGrant returns fault.Forbidden unless the caller may review a server.
func (s *Service) requireGrant(ctx context.Context, c authority.Caller, name registry.Name) error {
	patterns, err := ReviewPatterns(ctx, s.ports.Grants, registry.Holder(c.UserID))
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(patterns, func(p registry.Pattern) bool { return p.Matches(name) }) {
		return fault.New(fault.Forbidden, "you have no review permission for the server of this review")
	}
	return nil
}

// ReviewPatterns returns the patterns of servers that a person may review.
func ReviewPatterns(ctx context.Context, grants registrystore.Grants, holder registry.Holder) ([]registry.Pattern, error) {
	list, err := grants.Of(ctx, holder)
	if err != nil {
		return nil, err
	}
	var patterns []registry.Pattern
	for _, g := range list {
		if g.Action == registry.ActionReview {
			patterns = append(patterns, g.Pattern)
		}
	}
	return patterns, nil
}
