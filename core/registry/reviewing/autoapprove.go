package reviewing

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/history"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// Approver approves documents by the rules of operators, without a person (contract C-15). Both
// fields are required.
type Approver struct {
	Rules  registrystore.ReviewRules
	Reader registrystore.ServerReader
}

// Approve returns a pending review as it is, or approved by the first rule that covers it. doc is
// the document of the review. It returns the errors of the database.
func (a Approver) Approve(
	ctx context.Context, r review.Review, doc registry.Document, now time.Time,
) (review.Review, error) {
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
