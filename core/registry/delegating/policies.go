package delegating

import (
	"context"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/permit"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/core/scope"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// maxPolicies is the greatest number of policies. It bounds the answer of a list.
const maxPolicies = 2000

// Policy is a policy with its state now.
type Policy struct {
	publisher.Policy
	State publisher.State
}

// PolicyPorts are the dependencies of Policies. All fields are required.
type PolicyPorts struct {
	Transactions transaction.Runner
	Policies     registrystore.Policies
	Checker      *permit.Checker
	Grants       registrystore.Grants
	Recorder     authority.Recorder
	Log          authstore.AuditLog
	Clock        clock.Clock
	Entropy      secrets.Entropy
}

// Policies adds, lists and removes policies: people for the names that they may publish, operators
// for all. Each method returns fault.Forbidden for a session below FULL_TRUST or a publisher, and
// fault.Unavailable when the database fails. It is safe for concurrent use.
type Policies struct {
	rules publisher.Rules
	ports PolicyPorts
}

// NewPolicies returns Policies.
func NewPolicies(c permit.Config, p PolicyPorts) *Policies { return &Policies{c.Rules, p} }

// Add adds a policy (contract P-20). That of an operator depends on no person, unless the draft names
// an owner. It returns fault.Invalid, with the name of the field, for a wrong draft, fault.Forbidden
// when the caller has no grant that covers the whole pattern, and fault.Invalid with code
// fault.RuleViolated when the owner has no grant, or there are too many policies.
func (s *Policies) Add(ctx context.Context, who authority.Caller, d publisher.Draft) (Policy, error) {
	maker, err := RequireMaker(who)
	if err != nil {
		return Policy{}, err
	}
	p, err := publisher.NewPolicy(d, s.rules, s.ports.Clock.Now())
	if err != nil {
		return Policy{}, err
	}
	for _, action := range p.Actions {
		if err := authority.CheckGiven(ctx, string(action)); err != nil {
			return Policy{}, err
		}
	}
	p.ID, p.CreatedBy = secrets.NewUUID[registry.PolicyID](s.ports.Entropy), maker
	mine, err := s.visible(ctx, who, scope.Admin)
	if err != nil {
		return Policy{}, err
	}
	if !mine(&p) {
		return Policy{}, fault.Newf(fault.Forbidden,
			"you have no publish permission that covers the whole pattern %s", p.Pattern)
	}
	if who.IsOperator() {
		p.CreatedBy = d.Owner
	}
	return Policy{p, publisher.Active}, s.store(ctx, p, maker)
}

// Check returns the error of Add for a wrong draft.
func (s *Policies) Check(d publisher.Draft) error {
	_, err := publisher.NewPolicy(d, s.rules, s.ports.Clock.Now())
	return err
}

// RequireMaker returns a person or a service account that may make policies, which outlive a token,
// so that one needs the scope of operators.
func RequireMaker(who authority.Caller) (registry.Holder, error) {
	return who.RequireFullTrust(scope.Admin)
}

// store stores a new policy and records it.
func (s *Policies) store(ctx context.Context, p publisher.Policy, maker registry.Holder) error {
	return s.ports.Transactions.Atomically(transaction.Exclusive(ctx), func(ctx context.Context) error {
		existing, err := s.ports.Policies.Find(ctx, registrystore.PolicyQuery{Limit: maxPolicies})
		if err != nil {
			return err
		}
		if len(existing) == maxPolicies {
			return fault.Violated("there are %d policies of publishers already: remove some", maxPolicies)
		}
		if p.CreatedBy != maker {
			if err := s.checkOwner(ctx, &p); err != nil {
				return err
			}
		}
		if err := s.ports.Policies.Add(ctx, p); err != nil {
			return err
		}
		return s.ports.Recorder.RecordChanges(ctx, newPolicyChange("publisher_add", &p, maker))
	})
}

// checkOwner returns fault.Invalid with code fault.RuleViolated if a policy depends on a person who
// may not give what it gives.
func (s *Policies) checkOwner(ctx context.Context, p *publisher.Policy) error {
	states, err := s.ports.Checker.States(ctx, []publisher.Policy{*p})
	if err == nil && states[0] != publisher.Active {
		err = fault.Violated("the owner is not an active person with a publish permission that covers the whole pattern %s",
			p.Pattern)
	}
	return err
}

// Change replaces the actions, the end, the owner and the manager of a policy by those of a draft,
// for an operator. What it has learnt of its proofs stays. It returns fault.NotFound if there is no
// policy with the ID, and for the draft the errors of Add.
func (s *Policies) Change(ctx context.Context, id registry.PolicyID, d publisher.Draft) error {
	wanted, err := publisher.NewPolicy(d, s.rules, s.ports.Clock.Now())
	if err != nil {
		return err
	}
	return s.ports.Transactions.Atomically(transaction.Exclusive(ctx), func(ctx context.Context) error {
		var before, after publisher.Policy
		err := s.ports.Policies.Update(ctx, id, func(p *publisher.Policy) error {
			before = *p
			p.Actions, p.ExpiresAt, p.CreatedBy, p.ManagedBy = wanted.Actions, wanted.ExpiresAt, d.Owner, d.ManagedBy
			after = *p
			return nil
		})
		if err == nil && d.Owner != "" {
			err = s.checkOwner(ctx, &after)
		}
		if err != nil {
			return err
		}
		change := newPolicyChange("publisher_change", &after, "")
		audit.Changing(change.Details, before.Object(), after.Object())
		return s.ports.Recorder.RecordChanges(ctx, change)
	})
}

// List returns the policies for names that the caller may publish, ordered by ID.
func (s *Policies) List(ctx context.Context, who authority.Caller) ([]Policy, error) {
	mine, err := s.visible(ctx, who, scope.Read)
	if err != nil {
		return nil, err
	}
	all, err := s.ports.Policies.Find(ctx, registrystore.PolicyQuery{Limit: 2 * maxPolicies})
	if err != nil {
		return nil, err
	}
	var selected []publisher.Policy
	for i := range all {
		if mine(&all[i]) {
			selected = append(selected, all[i])
		}
	}
	states, err := s.ports.Checker.States(ctx, selected)
	if err != nil {
		return nil, err
	}
	list := make([]Policy, len(selected))
	for i := range selected {
		list[i] = Policy{selected[i], states[i]}
	}
	return list, nil
}

// Remove removes a policy for names that the caller may publish, and with it ends its tokens. It
// returns fault.NotFound for any other, and the error of check.
func (s *Policies) Remove(
	ctx context.Context, who authority.Caller, id registry.PolicyID, check registry.Check[publisher.Policy],
) error {
	mine, err := s.visible(ctx, who, scope.Admin)
	if err != nil {
		return err
	}
	actor, err := who.Person()
	if err != nil {
		return err
	}
	return s.ports.Transactions.Atomically(transaction.Exclusive(ctx), func(ctx context.Context) error {
		found, err := s.ports.Policies.Find(ctx, registrystore.PolicyQuery{IDs: []registry.PolicyID{id}})
		if err != nil {
			return err
		}
		if len(found) == 0 || !mine(&found[0]) {
			return fault.New(fault.NotFound, "there is no policy of a publisher with this id")
		}
		if err := check.Permit(&found[0]); err != nil {
			return err
		}
		if err := s.ports.Policies.Remove(ctx, id); err != nil {
			return err
		}
		return s.ports.Recorder.RecordChanges(ctx, newPolicyChange("publisher_remove", &found[0], actor))
	})
}

// visible returns the condition for policies that the caller may see and make, who must have full
// trust; a token needs the scope.
func (s *Policies) visible(
	ctx context.Context, who authority.Caller, needed scope.Scope,
) (func(*publisher.Policy) bool, error) {
	holder, err := who.RequireFullTrust(needed)
	if err != nil || who.IsOperator() {
		return func(*publisher.Policy) bool { return true }, err
	}
	patterns, err := permit.Patterns(ctx, s.ports.Grants, holder, registry.ActionPublish)
	return func(p *publisher.Policy) bool { return permit.Covers(patterns, p.Pattern) }, err
}

// newPolicyChange returns the audit event of a policy. It is in the log of the person who made the
// change; without one an operator made it.
func newPolicyChange(action audit.Action, p *publisher.Policy, person registry.Holder) audit.Change {
	subject := p.Domain.String()
	if !p.Method.ByDomain() {
		subject = p.Issuer + " " + p.Subject.String()
	}
	return audit.Change{
		Category: audit.AccountChange, Action: action, Subject: audit.Subject(person), ByOperator: person == "",
		Details: audit.About(audit.Details{
			"policy": audit.Text(p.ID), "method": audit.Text(p.Method), "publisher": audit.Text(subject),
			"resource": audit.Text(p.Pattern.String()), "actions": audit.Texts(p.Actions),
		}, p.Object()),
	}
}

// Parse returns the policy of a draft as it would be stored, also for one that has expired. The
// errors are those of publisher.NewPolicy.
func (s *Policies) Parse(d publisher.Draft) (publisher.Policy, error) {
	return publisher.NewPolicy(d, s.rules, time.Time{})
}

// All returns all policies, ordered by ID.
func (s *Policies) All(ctx context.Context) ([]publisher.Policy, error) {
	return s.ports.Policies.Find(ctx, registrystore.PolicyQuery{})
}

// The bounds of Refused.
const (
	refusedAge    = 30 * 24 * time.Hour
	refusedEvents = 1000 // that are read
	refusedProofs = 20
)

// Refused returns the last proofs that held and that no one had allowed, newest first, and each domain
// with a key and each job once: at most 20 of the last 30 days, as far as they concern the names that
// the caller may publish. The errors are those of List.
func (s *Policies) Refused(ctx context.Context, who authority.Caller) ([]publisher.Refused, error) {
	holder, err := who.RequireFullTrust(scope.Read)
	if err != nil {
		return nil, err
	}
	grants, err := permit.Patterns(ctx, s.ports.Grants, holder, registry.ActionPublish)
	if err != nil || len(grants) == 0 {
		return nil, err
	}
	policies, err := s.List(ctx, who)
	if err != nil {
		return nil, err
	}
	plain := each.MapRef(policies, func(p *Policy) publisher.Policy { return p.Policy })
	failed := false
	events, _, err := s.ports.Log.Search(ctx, authstore.AuditQuery{
		Category: audit.PublisherProof, Success: &failed, After: s.ports.Clock.Now().Add(-refusedAge),
		Limit: refusedEvents, Uncounted: true,
	})
	if err != nil {
		return nil, err
	}
	return selectRefused(events, grants, plain), nil
}

// selectRefused returns the refused proofs among events that concern somebody.
func selectRefused(events []audit.Event, grants []registry.Pattern, policies []publisher.Policy) []publisher.Refused {
	var list []publisher.Refused
	for i := range events {
		r, ok := publisher.ReadRefused(events[i])
		if !ok || slices.ContainsFunc(list, func(l publisher.Refused) bool { return l.Same(&r) }) {
			continue
		}
		if r.Concerns(grants, policies) {
			list = append(list, r)
		}
		if len(list) == refusedProofs {
			break
		}
	}
	return list
}

// Issuers returns the issuers of ID tokens that the service accepts, except that of GitHub Actions.
func (s *Policies) Issuers() []string { return slices.Clone(s.rules.Issuers) }
