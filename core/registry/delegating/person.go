package delegating

import (
	"context"
	"net/netip"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// PersonPorts are the dependencies of a Service. All fields are required.
type PersonPorts struct {
	Operator  *PolicyOperator
	Grants    registrystore.Grants
	Authority authority.Authority
}

// Service lets people add, list and remove policies for the names that they may publish. Each
// method returns fault.Unauthenticated without a good token, fault.Forbidden for a session below
// FULL_TRUST or the token of a publisher, and fault.Unavailable when the database fails. It is safe
// for concurrent use.
type Service struct{ ports PersonPorts }

// New returns a service.
func New(p PersonPorts) *Service { return &Service{p} }

// Request is the caller of a use case.
type Request struct {
	Token   string     // the access token as it was sent; empty without one
	Address netip.Addr // of the client
}

// Authorize returns the error that Add returns for the caller, whatever the draft is.
func (s *Service) Authorize(ctx context.Context, r Request) error {
	_, err := s.identifyPerson(ctx, r)
	return err
}

// Add adds a policy (contract P-20). It returns fault.Invalid, with the name of the field, for a
// wrong draft, fault.Forbidden when the caller has no grant that covers the whole pattern, and
// fault.Conflict when there are too many policies.
func (s *Service) Add(ctx context.Context, r Request, d publisher.Draft) (Policy, error) {
	caller, err := s.identifyPerson(ctx, r)
	if err != nil {
		return Policy{}, err
	}
	p, err := publisher.NewPolicy(d, s.ports.Operator.rules, s.ports.Operator.ports.Clock.Now())
	if err != nil {
		return Policy{}, err
	}
	p.CreatedBy = caller
	patterns, err := publishPatterns(ctx, s.ports.Grants, caller)
	if err != nil {
		return Policy{}, err
	}
	if !covers(patterns, p.Pattern) {
		return Policy{}, fault.Newf(fault.Forbidden, "you have no publish permission that covers the whole pattern %s", p.Pattern)
	}
	return s.ports.Operator.store(ctx, p)
}

// List returns the policies for names that the caller may publish, ordered by ID.
func (s *Service) List(ctx context.Context, r Request) ([]Policy, error) {
	_, visible, err := s.identifyMaker(ctx, r)
	if err != nil {
		return nil, err
	}
	return s.ports.Operator.list(ctx, visible)
}

// Remove removes a policy for names that the caller may publish. It returns fault.NotFound for any
// other.
func (s *Service) Remove(ctx context.Context, r Request, id publisher.PolicyID) error {
	caller, visible, err := s.identifyMaker(ctx, r)
	if err != nil {
		return err
	}
	return s.ports.Operator.remove(ctx, id, caller, visible)
}

// identifyMaker returns the caller and the condition for policies that the caller may see.
func (s *Service) identifyMaker(ctx context.Context, r Request) (registry.Holder, func(*publisher.Policy) bool, error) {
	caller, err := s.identifyPerson(ctx, r)
	if err != nil {
		return "", nil, err
	}
	patterns, err := publishPatterns(ctx, s.ports.Grants, caller)
	return caller, func(p *publisher.Policy) bool { return covers(patterns, p.Pattern) }, err
}

// identifyPerson returns the caller, who must be a person at FULL_TRUST.
func (s *Service) identifyPerson(ctx context.Context, r Request) (registry.Holder, error) {
	caller, err := s.ports.Authority.Identify(ctx, r.Token)
	if err != nil {
		return "", err
	}
	if caller.Publisher != nil {
		return "", fault.New(fault.Forbidden, "the token of a publisher may only publish and change status: sign in as a person")
	}
	return registry.Holder(caller.UserID), s.ports.Authority.RequireFullTrust(ctx, caller)
}
