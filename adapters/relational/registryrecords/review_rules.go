package registryrecords

import (
	"context"
	"database/sql"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// ReviewRules stores the rules of reviews. It implements registrystore.ReviewRules.
type ReviewRules struct{ db *database.DB }

// ReviewNotices stores when reviewers were notified. It implements registrystore.ReviewNotices.
type ReviewNotices struct{ db *database.DB }

var (
	_ registrystore.ReviewRules   = (*ReviewRules)(nil)
	_ registrystore.ReviewNotices = (*ReviewNotices)(nil)
)

// NewReviewRules returns the store of rules.
func NewReviewRules(db *database.DB) *ReviewRules { return &ReviewRules{db} }

// NewReviewNotices returns the store of notices.
func NewReviewNotices(db *database.DB) *ReviewNotices { return &ReviewNotices{db} }

// Add implements registrystore.ReviewRules.
func (s *ReviewRules) Add(ctx context.Context, r review.Rule) error {
	_, err := s.db.Exec(ctx,
		"INSERT INTO review_rules (id, pattern, publisher, condition, created_at, managed_by) VALUES (?, ?, ?, ?, ?, ?)",
		string(r.ID), r.Pattern.String(), r.Publisher, string(r.When), database.NewInstant(r.CreatedAt), r.ManagedBy)
	return err
}

// Remove implements registrystore.ReviewRules.
func (s *ReviewRules) Remove(ctx context.Context, id review.RuleID) error {
	removed, err := s.db.Exec(ctx, "DELETE FROM review_rules WHERE id = ?", string(id))
	return changedOr(removed, err, fault.New(fault.NotFound, "there is no rule with this id"))
}

// All implements registrystore.ReviewRules.
func (s *ReviewRules) All(ctx context.Context) ([]review.Rule, error) {
	q := database.Query{
		Text:  "SELECT id, pattern, publisher, condition, created_at, managed_by FROM review_rules ORDER BY created_at, id",
		Fixed: true,
	}
	return database.CollectAll(ctx, s.db, q, func(row *sql.Rows) (review.Rule, error) {
		var r review.Rule
		var pattern, when string
		var created database.Instant
		if err := row.Scan(&r.ID, &pattern, &r.Publisher, &when, &created, &r.ManagedBy); err != nil {
			return review.Rule{}, err
		}
		var broken [2]error
		r.Pattern, broken[0] = registry.ParsePattern(pattern)
		r.When, broken[1] = review.ParseWhen(when)
		r.CreatedAt = created.Time
		return r, checkRow(broken[:]...)
	})
}

// Last implements registrystore.ReviewNotices.
func (s *ReviewNotices) Last(ctx context.Context, reviewer registry.Holder) (time.Time, error) {
	q := database.Query{Text: "SELECT sent_at FROM review_notices WHERE reviewer = ?", Args: []any{string(reviewer)}}
	var at database.Instant
	err := s.db.ScanRow(ctx, q, &at)
	return at.Time, err
}

// Record implements registrystore.ReviewNotices.
func (s *ReviewNotices) Record(ctx context.Context, reviewer registry.Holder, last, now time.Time) error {
	text, args := "UPDATE review_notices SET sent_at = ? WHERE reviewer = ? AND sent_at = ?",
		[]any{database.NewInstant(now), string(reviewer), database.NewInstant(last)}
	if last.IsZero() {
		text, args = "INSERT INTO review_notices (reviewer, sent_at) VALUES (?, ?) ON CONFLICT DO NOTHING", []any{
			string(reviewer), database.NewInstant(now),
		}
	}
	changed, err := s.db.Exec(ctx, text, args...)
	return changedOr(changed, err, fault.New(fault.Conflict, "the reviewer was notified meanwhile"))
}
