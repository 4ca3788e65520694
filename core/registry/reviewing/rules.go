package reviewing

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/history"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

const (
	// maxRules is the greatest number of rules, which are all read for each submission.
	maxRules = 1000
	// maxPublisher is the greatest length of the publisher of a rule, in bytes.
	maxPublisher = 200
)

// RuleDraft has the parameters of a rule, as they were given.
type RuleDraft struct {
	Pattern   string
	Publisher string // a user id, the ID of a policy, or empty for all
	When      string
	ManagedBy string
}

// Rule returns the rule of the draft without an ID and a time. It returns fault.Invalid, with the
// name of the parameter, for a wrong one.
func (d RuleDraft) Rule() (rule review.Rule, err error) {
	rule.Publisher, rule.ManagedBy = d.Publisher, d.ManagedBy
	if rule.Pattern, err = registry.ParsePattern(d.Pattern); err != nil {
		return review.Rule{}, fault.In("pattern", err)
	}
	if rule.When, err = review.ParseWhen(d.When); err != nil {
		return review.Rule{}, fault.In("when", err)
	}
	if len(d.Publisher) > maxPublisher || !registry.IsText(d.Publisher) {
		return review.Rule{}, fault.In("publisher",
			fault.Newf(fault.Invalid, "publisher must be text of at most %d bytes", maxPublisher))
	}
	return rule, nil
}

// AddRule adds a rule, which applies to later submissions. It returns fault.Invalid, with the name
// of the parameter, for a wrong one or when there are too many rules.
func (s *Service) AddRule(ctx context.Context, d RuleDraft) (review.Rule, error) {
	rule, err := d.Rule()
	if err != nil {
		return review.Rule{}, err
	}
	rule.ID = secrets.NewUUID[review.RuleID](s.ports.Entropy)
	rule.CreatedAt = s.ports.Clock.Now().UTC().Truncate(time.Microsecond)
	err = s.ports.Transactions.Atomically(transaction.Exclusive(ctx), func(ctx context.Context) error {
		existing, err := s.ports.Rules.All(ctx)
		if err != nil {
			return err
		}
		if len(existing) >= maxRules {
			return fault.Violated("there are %d rules already: remove some", maxRules)
		}
		if err := s.ports.Rules.Add(ctx, rule); err != nil {
			return err
		}
		return s.ports.Recorder.RecordChanges(ctx, newRuleChange("review_rule_add", rule))
	})
	return rule, err
}

// Rules returns all rules, the oldest first.
func (s *Service) Rules(ctx context.Context) ([]review.Rule, error) {
	return s.ports.Rules.All(ctx)
}

// FindRule returns a rule, or fault.NotFound.
func (s *Service) FindRule(ctx context.Context, id review.RuleID) (review.Rule, error) {
	all, err := s.ports.Rules.All(ctx)
	if err != nil {
		return review.Rule{}, err
	}
	if r := registry.FindIn(all, func(r *review.Rule) bool { return r.ID == id }); r != nil {
		return *r, nil
	}
	return review.Rule{}, fault.New(fault.NotFound, "there is no rule with this id")
}

// RemoveRule removes a rule. What it has approved stays. It returns fault.NotFound if it does not
// exist with the ID, and the error of check.
func (s *Service) RemoveRule(ctx context.Context, id review.RuleID, check registry.Check[review.Rule]) error {
	return s.ports.Transactions.Atomically(transaction.Exclusive(ctx), func(ctx context.Context) error {
		rule, err := s.FindRule(ctx, id)
		if err == nil {
			err = check.Permit(&rule)
		}
		if err != nil {
			return err
		}
		if err := s.ports.Rules.Remove(ctx, id); err != nil {
			return err
		}
		return s.ports.Recorder.RecordChanges(ctx, newRuleChange("review_rule_remove", rule))
	})
}

// newRuleChange returns the audit event of a rule.
func newRuleChange(action audit.Action, r review.Rule) audit.Change {
	return registry.NewOperatorChange(action, audit.About(audit.Details{
		"rule": audit.Text(r.ID), "resource": audit.Text(r.Pattern.String()), "publisher": audit.Text(r.Publisher),
		"when": audit.Text(r.When),
	}, r.Object()))
}

// Approver approves documents by the rules of operators, without a person (contract C-15). Rules and Reader
// are required.
type Approver struct {
	Config Config
	Rules  registrystore.ReviewRules
	Reader registrystore.ServerReader
}

// Approve returns a pending review as it is, or approved by the first rule that covers it. A rule approves no
// tools: it approves no version that needs a tool list, and nothing that two people must approve. doc is the document of the review. It returns the errors of the database.
func (a Approver) Approve(
	ctx context.Context, r review.Review, doc registry.Document, now time.Time,
) (review.Review, error) {
	if needed := tools.CheckRequired(a.Config.ToolsRequired, doc.Bytes(), nil); needed != nil {
		return r, nil //nolint:nilerr // it waits
	}
	if dangerous, err := a.needsPeople(ctx, r); err != nil || dangerous {
		return r, err
	}
	rules, err := a.Rules.All(ctx)
	if err != nil {
		return review.Review{}, err
	}
	rule, err := review.FirstRule(rules, r.Name, r.Submitter, func() (bool, error) {
		return a.hasSameOrigins(ctx, doc)
	})
	if err != nil || rule == "" {
		return r, err
	}
	if r, err = r.ApproveByRule(rule, now); err == nil {
		r.Replaced, err = Compared(ctx, a.Reader, r)
	}
	return r, err
}

// needsPeople reports whether two people must approve a review, which no rule can.
func (a Approver) needsPeople(ctx context.Context, r review.Review) (bool, error) {
	if !a.Config.TwoApprovals {
		return false, nil
	}
	replaces, err := Compared(ctx, a.Reader, r)
	if err != nil {
		return false, err
	}
	shown, err := r.Show(replaces)
	return shown.IsDangerous(), err
}

// hasSameOrigins reports whether the origins of a document equal those of one version of its server
// that is not deleted.
func (a Approver) hasSameOrigins(ctx context.Context, doc registry.Document) (bool, error) {
	origins, err := review.ReadOrigins(doc.Bytes())
	if err != nil {
		return false, err
	}
	latest, err := a.Reader.Latest(ctx, doc.Name(), false)
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if approved, err := review.ReadOrigins(latest.Document); err == nil && origins.Equal(approved) {
		return true, nil
	}
	history, err := history.AllVersions(ctx, a.Reader, doc.Name(), false)
	if err != nil {
		return false, err
	}
	return history.Any(ctx, func(r registry.Record) bool {
		approved, err := review.ReadOrigins(r.Document)
		return err == nil && origins.Equal(approved)
	})
}
