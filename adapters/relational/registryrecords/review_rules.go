package registryrecords

import (
	"context"
	"database/sql"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/review"
)

// ruleStore stores the rules of reviews. It implements registrystore.ReviewRules.
type ruleStore struct{ db *database.DB }

// noticeStore stores when reviewers were notified. It implements registrystore.ReviewNotices.
type noticeStore struct{ db *database.DB }

func (s *ruleStore) Add(ctx context.Context, r review.Rule) error {
	_, err := s.db.Exec(ctx,
		"INSERT INTO review_rules (id, pattern, publisher, condition, created_at, managed_by) VALUES (?, ?, ?, ?, ?, ?)",
		string(r.ID), r.Pattern.String(), r.Publisher, string(r.When), database.NewInstant(r.CreatedAt), r.ManagedBy)
	return err
}

func (s *ruleStore) Remove(ctx context.Context, id review.RuleID) error {
	removed, err := s.db.Exec(ctx, "DELETE FROM review_rules WHERE id = ?", string(id))
	return changedOr(removed, err, fault.New(fault.NotFound, "there is no rule with this id"))
}

func (s *ruleStore) All(ctx context.Context) ([]review.Rule, error) {
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

func (s *noticeStore) Last(ctx context.Context, reviewer registry.Holder) (time.Time, error) {
	q := database.Query{Text: "SELECT sent_at FROM review_notices WHERE reviewer = ?", Args: []any{string(reviewer)}}
	var at database.Instant
	err := s.db.ScanRow(ctx, q, &at)
	return at.Time, err
}

func (s *noticeStore) Record(ctx context.Context, reviewer registry.Holder, last, now time.Time) error {
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
