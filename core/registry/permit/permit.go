// Package permit decides what a caller may do now: what policies and grants give, and who may operate.
// It records in the audit log what was refused (contract R-38). Packages delegating and publisher have
// how permissions come about.
package permit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/core/scope"
	"github.com/tollgate-dev/tollgate/core/toolserver"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/transaction"
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
	var ids []registry.PolicyID
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
func (c *Checker) Makers(ctx context.Context, ids []registry.PolicyID) ([]registry.Holder, error) {
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
	return Covers(patterns, p.Pattern), nil
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

// RequireReviewer returns fault.Forbidden unless the caller is an operator, or a person at FULL_TRUST
// with a grant to review the name, within the scopes of its token. For a name that no server can have, a
// grant for any pattern is enough, so that the caller gets the error of the name.
func RequireReviewer(ctx context.Context, grants registrystore.Grants, c authority.Caller, serverName string) error {
	if err := c.RequireAction(registry.ActionReview); err != nil {
		return err
	}
	patterns, err := ReviewPatterns(ctx, grants, c)
	if err != nil || c.IsOperator() {
		return err
	}
	name, bad := registry.ParseName(serverName)
	granted := slices.ContainsFunc(patterns, func(p registry.Pattern) bool { return bad != nil || p.Matches(name) })
	switch {
	case granted:
		_, err := c.RequireFullTrust()
		return err
	case bad != nil:
		return fault.New(fault.Forbidden, "you have no review permission on this registry")
	}
	return fault.Newf(fault.Forbidden, "you have no review permission for %s", name)
}

// ReviewPatterns returns the patterns of the names that the caller may review: in the order of the
// names, without those that another one covers; an operator may review all. It returns fault.Forbidden
// for a publisher.
func ReviewPatterns(ctx context.Context, grants registrystore.Grants, c authority.Caller) ([]registry.Pattern, error) {
	holder, err := c.Person()
	if err != nil {
		return nil, err
	}
	if c.IsOperator() {
		return Everything()
	}
	patterns, err := Patterns(ctx, grants, holder, registry.ActionReview)
	return toolserver.DisjointPatterns(patterns), err
}

// Everything returns the pattern of all names.
func Everything() ([]registry.Pattern, error) {
	all, err := registry.ParsePattern("*")
	return []registry.Pattern{all}, err
}

// Covers reports whether one of the patterns covers the whole pattern p.
func Covers(patterns []registry.Pattern, p registry.Pattern) bool {
	return slices.ContainsFunc(patterns, func(q registry.Pattern) bool { return q.Covers(p) })
}

// Operators decides who may do in a browser what operator commands do. It is safe for concurrent
// use.
type Operators struct {
	grants registrystore.Grants
	acts   authority.Acts
}

// NewOperators returns Operators.
func NewOperators(g registrystore.Grants, a authority.Acts) *Operators { return &Operators{g, a} }

// actOperate is the action of a refusal in the audit log.
const actOperate audit.Action = "operate"

var errNoOperate = fault.New(fault.Forbidden, "this needs the grant operate; ask an operator")

// Authorize returns a person who may operate, as Permit does. Refusals for the grant are recorded
// in the audit log.
func (o *Operators) Authorize(ctx context.Context, who authority.Caller) (registry.Holder, error) {
	holder, err := o.Permit(ctx, who, scope.Admin)
	if errors.Is(err, errNoOperate) {
		err = Refuse(ctx, o.acts, authority.Act{Caller: who, Action: actOperate}, err)
	}
	return holder, err
}

// Permit returns a person or a service account that may operate: with the grant operate, at
// FULL_TRUST or by a token with the scope. It permits operator commands, which have no holder. It
// returns fault.Forbidden without the scope or the grant, for a publisher and, asking for a step-up,
// below FULL_TRUST.
func (o *Operators) Permit(
	ctx context.Context, who authority.Caller, needed scope.Scope,
) (registry.Holder, error) {
	holder, err := who.Person()
	if err == nil {
		err = who.RequireScope(needed)
	}
	if err != nil || who.IsOperator() {
		return "", err
	}
	grants, err := o.grants.Of(ctx, holder)
	if err != nil {
		return "", err
	}
	if !slices.ContainsFunc(grants, func(g registry.Grant) bool { return g.Action == registry.ActionOperate }) {
		return "", errNoOperate
	}
	return who.RequireFullTrust()
}

// MaxReason is the greatest length of a reason in the audit log, in characters.
const MaxReason = 1000

// Refuse records that the act was refused, and returns the cause. It returns nil without a cause.
// What an operator could not do is not recorded: only callers are refused. The record is made even
// if the caller has cancelled the request. If it cannot be made, its error is returned instead,
// because every refusal must be recorded.
func Refuse(ctx context.Context, a authority.Acts, act authority.Act, cause error) error {
	if cause == nil || !act.Caller.IsRemote() {
		return cause
	}
	act.Reason, act.Warning = PublicReason(cause), ""
	ctx, kind := context.WithoutCancel(ctx), fault.KindOf(cause)
	if kind == fault.Unavailable {
		ctx = transaction.Brief(ctx) // the change has waited for its turn; the caller does not wait again
	}
	err := a.Record(ctx, act)
	switch {
	case err == nil, kind == fault.Internal, kind == fault.Unavailable:
		return cause
	default:
		return fmt.Errorf("record a refused %s: %w", act.Action, err)
	}
}

// PublicReason returns the reason of a refusal without internal errors, cut to MaxReason characters
// and an ellipsis.
func PublicReason(cause error) string {
	reason := fault.PublicMessage(cause)
	if runes := []rune(reason); len(runes) > MaxReason {
		return string(runes[:MaxReason]) + "…"
	}
	return reason
}
