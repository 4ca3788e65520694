// Package delegating holds the use cases that say who may change which servers: operators give
// grants to people; people and operators keep the policies of publishers; a Prover exchanges the
// proof of a publisher for a token; a Rechecker looks at intervals whether the domains of policies
// still have their keys (contract P-1 to P-22). Package publisher has the rules of proofs and
// policies, package publishing enforces what was given.
package delegating

import (
	"context"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// Config holds the settings of policies.
type Config struct {
	Mode publisher.Mode
	// Rules are what new policies must keep to.
	Rules publisher.Rules
	// UnprovenAfter is how long the key of a domain may be gone before policies of the domain give
	// nothing.
	UnprovenAfter time.Duration
}

// CheckerPorts are the dependencies of a Checker. All fields are required.
type CheckerPorts struct {
	Policies registrystore.Policies
	Grants   registrystore.Grants
	Makers   authority.Makers
	Clock    clock.Clock
}

// Checker decides what policies give now (contract P-13, P-14, P-16). It is safe for concurrent
// use.
type Checker struct {
	config Config
	ports  CheckerPorts
}

// NewChecker returns a checker.
func NewChecker(c Config, p CheckerPorts) *Checker { return &Checker{c, p} }

// LivingPermissions returns those of the permissions of a token that are still in force. A
// permission without a policy is in force while proofs are open to everybody. It returns
// fault.Unavailable when the database is not available.
func (c *Checker) LivingPermissions(ctx context.Context, list []publisher.Permission) ([]publisher.Permission, error) {
	if c.config.Mode == publisher.Off {
		return nil, nil
	}
	var living []publisher.Permission
	var ids []publisher.PolicyID
	for _, p := range list {
		switch {
		case p.Policy != "":
			ids = append(ids, p.Policy)
		case c.config.Mode == publisher.Open:
			living = append(living, p)
		}
	}
	if len(ids) == 0 {
		return living, nil
	}
	found, err := c.ports.Policies.Find(ctx, registrystore.PolicyQuery{IDs: ids})
	if err != nil {
		return nil, err
	}
	states, err := c.States(ctx, found)
	if err != nil {
		return nil, err
	}
	for i := range found {
		if states[i] == publisher.Active {
			living = append(living, found[i].Permission())
		}
	}
	return living, nil
}

// Makers returns the people who created the policies with some IDs, without those that operator
// commands created. It returns fault.Unavailable when the database is not available.
func (c *Checker) Makers(ctx context.Context, ids []publisher.PolicyID) ([]registry.Holder, error) {
	found, err := c.ports.Policies.Find(ctx, registrystore.PolicyQuery{IDs: ids})
	if err != nil {
		return nil, err
	}
	var makers []registry.Holder
	for i := range found {
		if by := found[i].CreatedBy; by != "" && !slices.Contains(makers, by) {
			makers = append(makers, by)
		}
	}
	return makers, nil
}

// States returns the state of each policy: Expired also while its maker is disabled or has no grant
// to publish that covers its pattern. It returns fault.Unavailable when the database is not
// available.
func (c *Checker) States(ctx context.Context, list []publisher.Policy) ([]publisher.State, error) {
	now := c.ports.Clock.Now()
	rights := map[registry.Holder][]registry.Pattern{}
	states := make([]publisher.State, len(list))
	for i := range list {
		states[i] = list[i].State(now, c.config.UnprovenAfter)
		may, err := c.makerMay(ctx, &list[i], rights)
		if err != nil {
			return nil, err
		}
		if !may {
			states[i] = publisher.Expired
		}
	}
	return states, nil
}

// makerMay reports whether the maker of a policy could create it now. rights holds the patterns of
// the makers that were looked up before.
func (c *Checker) makerMay(
	ctx context.Context, p *publisher.Policy, rights map[registry.Holder][]registry.Pattern,
) (bool, error) {
	if p.CreatedBy == "" {
		return true, nil
	}
	patterns, known := rights[p.CreatedBy]
	if !known {
		active, err := c.ports.Makers.IsActive(ctx, string(p.CreatedBy))
		if err != nil {
			return false, err
		}
		if active {
			if patterns, err = Patterns(ctx, c.ports.Grants, p.CreatedBy, registry.ActionPublish); err != nil {
				return false, err
			}
		}
		rights[p.CreatedBy] = patterns
	}
	return covers(patterns, p.Pattern), nil
}

// Patterns returns the patterns of the servers for which a person has grants for an action.
func Patterns(
	ctx context.Context, grants registrystore.Grants, holder registry.Holder, action registry.Action,
) ([]registry.Pattern, error) {
	list, err := grants.Of(ctx, holder)
	var patterns []registry.Pattern
	for _, g := range list {
		if g.Action == action {
			patterns = append(patterns, g.Pattern)
		}
	}
	return patterns, err
}

// covers reports whether one of the patterns covers the whole pattern p.
func covers(patterns []registry.Pattern, p registry.Pattern) bool {
	return slices.ContainsFunc(patterns, func(q registry.Pattern) bool { return q.Covers(p) })
}
