package review

import (
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
)

// RuleID identifies a rule; it is a UUID in lower case.
type RuleID string

// When says which documents a rule approves.
type When string

// The conditions.
const (
	Any         When = "any"
	SameOrigins When = "same-origins" // Origins.Equal to one approved version of the server
)

// ParseWhen returns the condition with the given name. It returns fault.Invalid for any other text.
func ParseWhen(s string) (When, error) {
	return fault.OneOf("when", s, Any, SameOrigins)
}

// Rule approves documents without a person.
type Rule struct {
	ID      RuleID
	Pattern registry.Pattern
	// Publisher restricts the rule to documents that the person with this user id submits, or a
	// publisher by the policy with this ID; empty for all.
	Publisher string
	When      When
	CreatedAt time.Time
	ManagedBy string // the owner of the file that manages the rule; empty without one
}

// Object returns the rule as the audit log describes it.
func (r *Rule) Object() audit.Object {
	return audit.Object{Kind: "reviewRule", Key: string(r.ID), Fields: audit.Details{
		"pattern": audit.Text(r.Pattern.String()), "publisher": audit.Text(r.Publisher), "when": audit.Text(r.When),
		"managedBy": audit.Text(r.ManagedBy),
	}}
}

// Covers reports whether the rule is for a server and its submitter. Its condition is not checked.
func (r *Rule) Covers(name registry.Name, by Submitter) bool {
	return r.Pattern.Matches(name) &&
		(r.Publisher == "" || r.Publisher == by.Key || by.Policy != "" && r.Publisher == string(by.Policy))
}

// FirstRule returns the first of the rules that approves a document. same reports whether its
// origins equal those of one approved version; it is called at most once.
func FirstRule(rules []Rule, name registry.Name, by Submitter, same func() (bool, error)) (RuleID, error) {
	rules = slices.DeleteFunc(slices.Clone(rules), func(r Rule) bool { return !r.Covers(name, by) })
	if i := slices.IndexFunc(rules, func(r Rule) bool { return r.When == Any }); i >= 0 {
		return rules[i].ID, nil
	}
	if len(rules) == 0 {
		return "", nil
	}
	if equal, err := same(); err != nil || !equal {
		return "", err
	}
	return rules[0].ID, nil
}
