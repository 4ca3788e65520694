package fakedb

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// Reviews implements [registrystore.Reviews].
type Reviews struct {
	*table[registry.ReviewID, review.Review]
}

// NewReviews returns the reviews of a database.
func NewReviews(db *Database) *Reviews { return &Reviews{db.reviews} }

// Add implements [registrystore.Reviews].
func (s *Reviews) Add(ctx context.Context, r review.Review, limit int) error {
	return s.db.run(ctx, func(ctx context.Context) error {
		if err := s.insert(ctx, r); err != nil || r.State != review.Pending || r.Kind == review.Tools {
			return err
		}
		pending, err := s.list(ctx, func(other review.Review) bool {
			return other.State == review.Pending && other.Submitter.Key == r.Submitter.Key && other.IsRequest() == r.IsRequest() &&
				other.Kind != review.Tools
		}, bySubmission)
		if n := len(pending) - 1; n >= limit {
			return fault.Newf(fault.Exhausted, "%d documents wait for review", n)
		}
		return err
	})
}

// Decide implements [registrystore.Reviews].
func (s *Reviews) Decide(ctx context.Context, r review.Review) error {
	err := s.update(ctx, r.ID, func(stored *review.Review) error {
		if stored.State != review.Pending {
			return errDecided()
		}
		same := stored.First.By == r.First.By && stored.First.Text == r.First.Text
		if r.First.By != "" && (same == (r.State == review.Pending) || r.First.By == r.DecidedBy || r.State == review.Rejected) {
			return errDecided()
		}
		if stored.First = r.First; r.State == review.Pending {
			return nil
		}
		stored.State, stored.Replaced, stored.DecidedBy, stored.DecidedAt, stored.Comment, stored.Rule =
			r.State, r.Replaced, r.DecidedBy, r.DecidedAt, r.Comment, r.Rule
		return nil
	})
	if fault.Is(err, fault.NotFound) {
		return errDecided()
	}
	if err != nil || r.State == review.Pending {
		return err
	}
	lists, err := NewToolLists(s.db).OfReview(ctx, r.ID)
	for _, l := range lists {
		if err == nil {
			err = s.db.toolLists.remove(ctx, keyOfToolList(l))
		}
	}
	return err
}

func errDecided() error { return fault.New(fault.Conflict, "the review is not pending any more") }

// PendingOf implements [registrystore.Reviews].
func (s *Reviews) PendingOf(ctx context.Context, name registry.Name, version registry.Version) (review.Review, error) {
	return s.one(ctx, func(r review.Review) bool {
		return r.Name == name && r.Version == version && r.State == review.Pending && r.Kind != review.Tools
	}, bySubmission)
}

// PendingTools implements [registrystore.ReviewBacklog].
func (s *Reviews) PendingTools(ctx context.Context, l tools.Stored) (review.Review, error) {
	return s.one(ctx, func(r review.Review) bool {
		return r.Name == l.Name && r.Version == l.Version && r.State == review.Pending && r.Part == l.Part && r.Source == l.Source
	}, bySubmission)
}

func bySubmission(a, b review.Review) int {
	return cmp.Or(a.SubmittedAt.Compare(b.SubmittedAt), cmp.Compare(a.ID, b.ID))
}

// List implements [registrystore.Reviews].
func (s *Reviews) List(ctx context.Context, q registrystore.ReviewQuery) (registrystore.ReviewPage, error) {
	q.After = storedTime(q.After)
	found, err := s.list(ctx, func(r review.Review) bool { return selectsReview(q, r) && isAfter(q, r) }, bySubmission)
	if err != nil {
		return registrystore.ReviewPage{}, err
	}
	if q.Newest {
		slices.Reverse(found)
	}
	for i := range found {
		if q.Brief {
			found[i].Document, found[i].Replaced = nil, nil
		}
	}
	n := countUntil(found, q.Limit, q.Bytes, func(r review.Review) int { return len(r.Document) })
	return registrystore.ReviewPage{Reviews: found[:n], More: n < len(found)}, nil
}

// Count implements [registrystore.Reviews].
func (s *Reviews) Count(ctx context.Context, q registrystore.ReviewQuery) (map[review.State]int, error) {
	found, err := s.list(ctx, func(r review.Review) bool { return selectsReview(q, r) }, bySubmission)
	counts := map[review.State]int{}
	for _, r := range found {
		counts[r.State]++
	}
	return counts, err
}

// Compared implements [registrystore.Reviews].
func (s *Reviews) Compared(ctx context.Context, pending []review.Review) ([][]byte, error) {
	return result(ctx, s.db, func(context.Context) ([][]byte, error) {
		documents := make([][]byte, len(pending))
		for _, stored := range s.db.versions.rows {
			for i, r := range pending {
				if stored.Name == r.Name &&
					(r.Kind == review.Replacement && stored.Version == r.Version ||
						r.Kind == review.NewVersion && stored.Latest) {
					documents[i] = bytes.Clone(stored.Document)
				}
			}
		}
		for i, r := range pending {
			if l, ok := s.db.toolLists.rows[toolListKey{versionKey{r.Name, r.Version}, r.Part, r.Source, "", true}]; ok && r.Kind == review.Tools {
				documents[i] = bytes.Clone(l.List.Canonical())
			}
		}
		return documents, nil
	})
}

// CountPending implements [registrystore.ReviewBacklog].
func (s *Reviews) CountPending(ctx context.Context) (int, error) {
	found, err := s.list(ctx, func(r review.Review) bool { return r.State == review.Pending }, bySubmission)
	return len(found), err
}

// DecidedByOperator implements [registrystore.ReviewBacklog].
func (s *Reviews) DecidedByOperator(ctx context.Context, after, until time.Time, limit int) ([]review.Review, error) {
	after, until = storedTime(after), storedTime(until)
	found, err := s.list(ctx, func(r review.Review) bool {
		return r.DecidedBy == review.Operator && r.DecidedAt.After(after) && !r.DecidedAt.After(until)
	}, func(a, b review.Review) int { return cmp.Or(a.DecidedAt.Compare(b.DecidedAt), cmp.Compare(a.ID, b.ID)) })
	found = first(found, limit)
	for i := range found {
		found[i].Document, found[i].Replaced = nil, nil
	}
	return found, err
}

func selectsReview(q registrystore.ReviewQuery, r review.Review) bool {
	switch {
	case q.State != "" && r.State != q.State, q.Decided && r.State == review.Pending,
		q.Refused && r.State != review.Rejected && r.State != review.ChangesRequested,
		q.Name != (registry.Name{}) && r.Name != q.Name,
		q.Within != (registry.Pattern{}) && !q.Within.Matches(r.Name),
		q.Kind != "" && r.Kind != q.Kind, !q.Until.IsZero() && !r.SubmittedAt.Before(q.Until),
		!q.FirstUntil.IsZero() && (r.First.By == "" || !r.First.At.After(q.FirstAfter) || r.First.At.After(q.FirstUntil)),
		q.By != "" && !r.IsOwn(registry.Holder(q.By)), q.For != "" && (r.IsOwn(q.For) || r.First.By == string(q.For)):
		return false
	}
	if len(q.Patterns) > 0 || q.Submitter != "" {
		matches := slices.ContainsFunc(q.Patterns, func(p registry.Pattern) bool { return p.Matches(r.Name) })
		if !matches && (q.Submitter == "" || !r.IsOwn(registry.Holder(q.Submitter))) {
			return false
		}
	}
	return true
}

func isAfter(q registrystore.ReviewQuery, r review.Review) bool {
	order := cmp.Or(r.SubmittedAt.Compare(q.After), cmp.Compare(r.ID, q.AfterID))
	return q.After.IsZero() || order > 0 != q.Newest && order != 0
}

// ReviewRules implements [registrystore.ReviewRules].
type ReviewRules struct {
	*table[review.RuleID, review.Rule]
}

// NewReviewRules returns the rules of a database.
func NewReviewRules(db *Database) *ReviewRules { return &ReviewRules{db.rules} }

// Add implements [registrystore.ReviewRules].
func (s *ReviewRules) Add(ctx context.Context, r review.Rule) error { return s.put(ctx, r) }

// All implements [registrystore.ReviewRules].
func (s *ReviewRules) All(ctx context.Context) ([]review.Rule, error) {
	return s.list(ctx, all, func(a, b review.Rule) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
}

// ReviewNotices implements [registrystore.ReviewNotices].
type ReviewNotices struct{ db *Database }

// NewReviewNotices returns the notices of a database.
func NewReviewNotices(db *Database) *ReviewNotices { return &ReviewNotices{db} }

// Last implements [registrystore.ReviewNotices].
func (s *ReviewNotices) Last(ctx context.Context, reviewer registry.Holder) (review.Notified, error) {
	return result(ctx, s.db, func(context.Context) (review.Notified, error) {
		row := s.db.notices.rows[reviewer]
		return review.Notified{At: row.Last, Mail: cmp.Or(row.Mail, review.AtOnce)}, nil
	})
}

// Choose implements [registrystore.ReviewNotices].
func (s *ReviewNotices) Choose(ctx context.Context, reviewer registry.Holder, m review.Mail, now time.Time) error {
	return s.db.run(ctx, func(ctx context.Context) error {
		row := s.db.notices.rows[reviewer]
		if row.Last.IsZero() {
			row.Last = now
		}
		return s.db.notices.put(ctx, noticeRow{reviewer, row.Last, m})
	})
}

// Record implements [registrystore.ReviewNotices].
func (s *ReviewNotices) Record(ctx context.Context, reviewer registry.Holder, last, now time.Time) error {
	return s.db.run(ctx, func(ctx context.Context) error {
		if !s.db.notices.rows[reviewer].Last.Equal(storedTime(last)) {
			return fault.New(fault.Conflict, "the reviewer was notified meanwhile")
		}
		return s.db.notices.put(ctx, noticeRow{reviewer, now, s.db.notices.rows[reviewer].Mail})
	})
}
