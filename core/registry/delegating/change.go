package delegating

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// maxPolicies is the greatest number of policies. It bounds the answer of a list; parallel calls
// may exceed it by a few.
const maxPolicies = 2000

// Policy is a policy with its state now.
type Policy struct {
	publisher.Policy
	State publisher.State
}

// PolicyOperatorPorts are the dependencies of an Operator. All fields are required.
type PolicyOperatorPorts struct {
	Transactions transaction.Runner
	Policies     registrystore.Policies
	Checker      *Checker
	Recorder     authority.Recorder
	Clock        clock.Clock
	Entropy      secrets.Entropy
}

// PolicyOperator adds, lists and removes policies for operator commands. It is safe for concurrent use.
type PolicyOperator struct {
	rules publisher.Rules
	ports PolicyOperatorPorts
}

// NewPolicyOperator returns an operator.
func NewPolicyOperator(c Config, p PolicyOperatorPorts) *PolicyOperator {
	return &PolicyOperator{c.Rules, p}
}

// Add adds a policy that depends on no person. It returns fault.Invalid, with the name of the
// field, for a wrong draft, fault.Conflict when there are too many policies, fault.Unavailable when
// the database fails.
func (o *PolicyOperator) Add(ctx context.Context, d publisher.Draft) (Policy, error) {
	p, err := publisher.NewPolicy(d, o.rules, o.ports.Clock.Now())
	if err != nil {
		return Policy{}, err
	}
	return o.store(ctx, p)
}

// store stores a new policy and records it.
func (o *PolicyOperator) store(ctx context.Context, p publisher.Policy) (Policy, error) {
	p.ID = secrets.NewUUID[publisher.PolicyID](o.ports.Entropy)
	err := o.ports.Transactions.Atomically(ctx, func(ctx context.Context) error {
		existing, err := o.ports.Policies.Find(ctx, registrystore.PolicyQuery{Limit: maxPolicies})
		if err != nil {
			return err
		}
		if len(existing) == maxPolicies {
			return fault.Newf(fault.Conflict, "there are %d policies of publishers already: remove some", maxPolicies)
		}
		if err := o.ports.Policies.Add(ctx, p); err != nil {
			return err
		}
		return o.ports.Recorder.RecordChanges(ctx, newChange(&p, p.CreatedBy, true))
	})
	return Policy{Policy: p, State: publisher.Active}, err
}

// List returns all policies, ordered by ID.
func (o *PolicyOperator) List(ctx context.Context) ([]Policy, error) {
	return o.list(ctx, func(*publisher.Policy) bool { return true })
}

func (o *PolicyOperator) list(ctx context.Context, wanted func(*publisher.Policy) bool) ([]Policy, error) {
	all, err := o.ports.Policies.Find(ctx, registrystore.PolicyQuery{Limit: 2 * maxPolicies})
	if err != nil {
		return nil, err
	}
	var selected []publisher.Policy
	for i := range all {
		if wanted(&all[i]) {
			selected = append(selected, all[i])
		}
	}
	states, err := o.ports.Checker.States(ctx, selected)
	if err != nil {
		return nil, err
	}
	list := make([]Policy, len(selected))
	for i := range selected {
		list[i] = Policy{selected[i], states[i]}
	}
	return list, nil
}

// Remove removes a policy, and with it ends its tokens. It returns fault.NotFound if there is none
// with the ID.
func (o *PolicyOperator) Remove(ctx context.Context, id publisher.PolicyID) error {
	return o.remove(ctx, id, "", func(*publisher.Policy) bool { return true })
}

// remove removes a policy that the actor may see.
func (o *PolicyOperator) remove(ctx context.Context, id publisher.PolicyID, actor registry.Holder, visible func(*publisher.Policy) bool) error {
	return o.ports.Transactions.Atomically(ctx, func(ctx context.Context) error {
		found, err := o.ports.Policies.Find(ctx, registrystore.PolicyQuery{IDs: []publisher.PolicyID{id}})
		if err != nil {
			return err
		}
		if len(found) == 0 || !visible(&found[0]) {
			return fault.New(fault.NotFound, "there is no policy of a publisher with this id")
		}
		if err := o.ports.Policies.Remove(ctx, id); err != nil {
			return err
		}
		return o.ports.Recorder.RecordChanges(ctx, newChange(&found[0], actor, false))
	})
}

// newChange returns the change of a policy for the audit log.
func newChange(p *publisher.Policy, actor registry.Holder, given bool) authority.PolicyChange {
	subject := p.Domain.String()
	if !p.Method.ByDomain() {
		subject = p.Issuer + " " + p.Subject.String()
	}
	return authority.PolicyChange{
		Actor: string(actor), Given: given, Policy: p.ID, Method: p.Method, Subject: subject, Pattern: p.Pattern.String(), Actions: p.Actions,
	}
}
