package fakedb

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// ReviewRules implements [registrystore.ReviewRules].
type ReviewRules struct{ db *Database }

// ReviewNotices implements [registrystore.ReviewNotices].
type ReviewNotices struct{ db *Database }

var (
	_ registrystore.ReviewRules   = (*ReviewRules)(nil)
	_ registrystore.ReviewNotices = (*ReviewNotices)(nil)
)

// NewReviewRules returns the rules of a database.
func NewReviewRules(db *Database) *ReviewRules { return &ReviewRules{db: db} }

// NewReviewNotices returns the notices of a database.
func NewReviewNotices(db *Database) *ReviewNotices { return &ReviewNotices{db: db} }

// Add implements [registrystore.ReviewRules].
func (s *ReviewRules) Add(ctx context.Context, r review.Rule) error {
	return s.db.writeTables(ctx, func(t *tables) error {
		r.CreatedAt = truncateToMicroseconds(r.CreatedAt)
		t.registry.rules[r.ID] = r
		return nil
	})
}

// Remove implements [registrystore.ReviewRules].
func (s *ReviewRules) Remove(ctx context.Context, id review.RuleID) error {
	return s.db.writeTables(ctx, func(t *tables) error {
		if _, ok := t.registry.rules[id]; !ok {
			return fault.New(fault.NotFound, "there is no rule with this id")
		}
		delete(t.registry.rules, id)
		return nil
	})
}

// All implements [registrystore.ReviewRules].
func (s *ReviewRules) All(ctx context.Context) (all []review.Rule, err error) {
	err = s.db.readTables(ctx, func(t *tables) error {
		for _, r := range t.registry.rules {
			all = append(all, r)
		}
		return nil
	})
	slices.SortFunc(all, func(a, b review.Rule) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return all, err
}

// Last implements [registrystore.ReviewNotices].
func (s *ReviewNotices) Last(ctx context.Context, reviewer registry.Holder) (last time.Time, err error) {
	err = s.db.readTables(ctx, func(t *tables) error {
		last = t.registry.notices[reviewer]
		return nil
	})
	return last, err
}

// Record implements [registrystore.ReviewNotices].
func (s *ReviewNotices) Record(ctx context.Context, reviewer registry.Holder, last, now time.Time) error {
	return s.db.writeTables(ctx, func(t *tables) error {
		if !t.registry.notices[reviewer].Equal(truncateToMicroseconds(last)) {
			return fault.New(fault.Conflict, "the reviewer was notified meanwhile")
		}
		t.registry.notices[reviewer] = truncateToMicroseconds(now)
		return nil
	})
}
