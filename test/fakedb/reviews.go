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
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// Reviews implements [registrystore.Reviews].
type Reviews struct{ db *Database }

var (
	_ registrystore.Reviews       = (*Reviews)(nil)
	_ registrystore.ReviewBacklog = (*Reviews)(nil)
)

// NewReviews returns the reviews of a database.
func NewReviews(db *Database) *Reviews { return &Reviews{db: db} }

// Add implements [registrystore.Reviews].
func (s *Reviews) Add(ctx context.Context, r review.Review, limit int) error {
	return s.db.writeTables(ctx, func(t *tables) error {
		if r.State != review.Pending {
			t.registry.reviews[r.ID] = copyReview(r)
			return nil
		}
		pending := 0
		for _, other := range t.registry.reviews {
			if other.State != review.Pending {
				continue
			}
			if other.Name == r.Name && other.Version == r.Version {
				return fault.New(fault.Conflict, "a document of the version waits for review already")
			}
			if other.Submitter.Key == r.Submitter.Key {
				pending++
			}
		}
		if pending >= limit {
			return fault.Newf(fault.Exhausted, "%d documents wait for review", pending)
		}
		t.registry.reviews[r.ID] = copyReview(r)
		return nil
	})
}

// Decide implements [registrystore.Reviews].
func (s *Reviews) Decide(ctx context.Context, r review.Review) error {
	return s.db.writeTables(ctx, func(t *tables) error {
		stored, ok := t.registry.reviews[r.ID]
		if !ok || stored.State != review.Pending {
			return fault.New(fault.Conflict, "the review is not pending any more")
		}
		r = copyReview(r)
		stored.State, stored.Replaced, stored.DecidedBy, stored.DecidedAt, stored.Comment, stored.Rule =
			r.State, r.Replaced, r.DecidedBy, r.DecidedAt, r.Comment, r.Rule
		t.registry.reviews[r.ID] = stored
		return nil
	})
}

// Get implements [registrystore.Reviews].
func (s *Reviews) Get(ctx context.Context, id review.ID) (review.Review, error) {
	return s.findOne(ctx, func(r *review.Review) bool { return r.ID == id })
}

// PendingOf implements [registrystore.Reviews].
func (s *Reviews) PendingOf(ctx context.Context, name registry.Name, version registry.Version) (review.Review, error) {
	return s.findOne(ctx, func(r *review.Review) bool {
		return r.Name == name && r.Version == version && r.State == review.Pending
	})
}

func (s *Reviews) findOne(ctx context.Context, wanted func(*review.Review) bool) (review.Review, error) {
	found, err := s.find(ctx, wanted)
	if err == nil && len(found) == 0 {
		err = fault.New(fault.NotFound, "the review does not exist")
	}
	if err != nil {
		return review.Review{}, err
	}
	return found[0], nil
}

// find returns the wanted reviews in the order of List.
func (s *Reviews) find(ctx context.Context, wanted func(*review.Review) bool) (found []review.Review, err error) {
	err = s.db.readTables(ctx, func(t *tables) error {
		for _, r := range t.registry.reviews {
			if wanted(&r) {
				found = append(found, copyReview(r))
			}
		}
		return nil
	})
	slices.SortFunc(found, func(a, b review.Review) int {
		return cmp.Or(a.SubmittedAt.Compare(b.SubmittedAt), cmp.Compare(a.ID, b.ID))
	})
	return found, err
}

// List implements [registrystore.Reviews].
func (s *Reviews) List(ctx context.Context, q registrystore.ReviewQuery) (registrystore.ReviewPage, error) {
	q.After = truncateToMicroseconds(q.After)
	found, err := s.find(ctx, func(r *review.Review) bool { return selectsReview(&q, r) })
	if err != nil {
		return registrystore.ReviewPage{}, err
	}
	size := 0
	for i := range found {
		if i == q.Limit || q.Bytes > 0 && size >= q.Bytes {
			return registrystore.ReviewPage{Reviews: found[:i], More: true}, nil
		}
		size += len(found[i].Document)
	}
	return registrystore.ReviewPage{Reviews: found}, nil
}

// Compared implements [registrystore.Reviews].
func (s *Reviews) Compared(ctx context.Context, pending []review.Review) ([][]byte, error) {
	documents := make([][]byte, len(pending))
	return documents, s.db.readTables(ctx, func(t *tables) error {
		for _, stored := range t.registry.versions {
			for i, r := range pending {
				if stored.Name == r.Name && (r.Kind == review.Replacement && stored.Version == r.Version || r.Kind == review.NewVersion && stored.Latest) {
					documents[i] = bytes.Clone(stored.Document)
				}
			}
		}
		return nil
	})
}

// CountPending implements [registrystore.ReviewBacklog].
func (s *Reviews) CountPending(ctx context.Context) (int, error) {
	found, err := s.find(ctx, func(r *review.Review) bool { return r.State == review.Pending })
	return len(found), err
}

// DecidedByOperator implements [registrystore.ReviewBacklog].
func (s *Reviews) DecidedByOperator(ctx context.Context, after, until time.Time, limit int) ([]review.Review, error) {
	after, until = truncateToMicroseconds(after), truncateToMicroseconds(until)
	found, err := s.find(ctx, func(r *review.Review) bool {
		return r.DecidedBy == review.Operator && r.DecidedAt.After(after) && !r.DecidedAt.After(until)
	})
	slices.SortFunc(found, func(a, b review.Review) int {
		return cmp.Or(a.DecidedAt.Compare(b.DecidedAt), cmp.Compare(a.ID, b.ID))
	})
	found = found[:min(limit, len(found))]
	for i := range found {
		found[i].Document, found[i].Replaced = nil, nil
	}
	return found, err
}

func selectsReview(q *registrystore.ReviewQuery, r *review.Review) bool {
	if q.State != "" && r.State != q.State {
		return false
	}
	if q.Name != (registry.Name{}) && r.Name != q.Name {
		return false
	}
	if len(q.Patterns) > 0 || q.Submitter != "" {
		matches := slices.ContainsFunc(q.Patterns, func(p registry.Pattern) bool { return p.Matches(r.Name) })
		if !matches && (q.Submitter == "" || !r.IsOwn(registry.Holder(q.Submitter))) {
			return false
		}
	}
	return q.After.IsZero() || cmp.Or(r.SubmittedAt.Compare(q.After), cmp.Compare(r.ID, q.AfterID)) > 0
}

// copyReview returns a review that shares no memory with r, as it comes back from a database.
func copyReview(r review.Review) review.Review {
	r.Document, r.Replaced = bytes.Clone(r.Document), bytes.Clone(r.Replaced)
	r.Checks, r.Submitter.Makers = cloneList(r.Checks), cloneList(r.Submitter.Makers)
	r.SubmittedAt, r.DecidedAt = truncateToMicroseconds(r.SubmittedAt), truncateToMicroseconds(r.DecidedAt)
	return r
}

func cloneList[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return slices.Clone(list)
}
