package registrystoretest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// ReviewStores are an empty store of reviews, and its transactions.
type ReviewStores struct {
	Reviews registrystore.Reviews
	Backlog registrystore.ReviewBacklog
	Writer  registrystore.ServerWriter
	Rules   registrystore.ReviewRules
	Notices registrystore.ReviewNotices
	Runner  transaction.Runner
}

// RunReviews runs the tests of the stores of reviews. open is called for each test.
func RunReviews(t *testing.T, open func(t *testing.T) ReviewStores) {
	t.Helper()
	parts := map[string]func(t *testing.T, s ReviewStores){
		"an empty store has no reviews":                                  hasNoReviews,
		"a stored review has the value of every field":                   keepsReviewFields,
		"a change of a returned review does not change the stored one":   returnsReviewCopies,
		"a second pending review of a version is refused":                refusesSecondPending,
		"a submitter cannot have more pending reviews than the limit":    limitsPending,
		"one of several parallel submissions of a version is stored":     addsOnePending,
		"parallel submissions never exceed the limit of a submitter":     limitsPendingInParallel,
		"a decision is stored with its person, time and comment":         storesDecision,
		"a decided review cannot be decided again":                       refusesSecondDecision,
		"a second approval is of another person, and the same text":      storesTwoApprovals,
		"one person gives one of two approvals at once":                  approvesFirstOnce,
		"one of several parallel decisions is stored":                    decidesOnce,
		"reviews are listed by state, pattern and submitter":             listsReviews,
		"rejections and requests of changes are listed together":         listsRefused,
		"pages list every review once":                                   readsReviewPages,
		"a page ends when its documents reach the limit of bytes":        endsReviewPages,
		"the versions that a review is compared with are found":          findsCompared,
		"pending reviews are counted":                                    countsPending,
		"decisions of operators are listed":                              listsOperatorDecisions,
		"rules are stored, listed and removed":                           keepsRules,
		"the time of the last notice changes only from the expected one": keepsNotices,
		"a reviewer keeps the chosen mail, and the time of the last":     keepsMail,
		"one of several parallel notices is recorded":                    recordsNoticeOnce,
		"a failed transaction stores no review":                          rollsReviewsBack,
		"a call with a cancelled context fails":                          refusesReviewsOfCanceled,
	}
	for name, part := range parts {
		t.Run(name, func(t *testing.T) { part(t, open(t)) })
	}
}

// noLimit is a limit of pending reviews that no test reaches.
const noLimit = 1000

func reviewID(n int) registry.ReviewID {
	return registry.ReviewID(fmt.Sprintf("00000000-0000-4000-8000-%012d", n))
}

// newReview returns a pending review that was submitted n hours after the epoch.
func newReview(t *testing.T, n int, server, submitter string) review.Review {
	t.Helper()
	return review.Review{
		ID: reviewID(n), Name: name(t, server), Version: version(t, fmt.Sprintf("1.0.%d", n)), State: review.Pending,
		Kind:     review.NewVersion,
		Document: []byte(fmt.Sprintf(`{"n":%d}`, n)), Submitter: review.Submitter{Key: submitter}, SubmittedAt: hour(n),
	}
}

// add adds reviews, each in its own transaction.
func (s ReviewStores) add(t *testing.T, reviews ...review.Review) {
	t.Helper()
	for _, r := range reviews {
		if err := s.tryAdd(t.Context(), r, noLimit); err != nil {
			t.Fatal(err)
		}
	}
}

func (s ReviewStores) tryAdd(ctx context.Context, r review.Review, limit int) error {
	return s.Runner.Atomically(ctx, func(ctx context.Context) error { return s.Reviews.Add(ctx, r, limit) })
}

// want checks the reviews that a query selects.
func (s ReviewStores) want(t *testing.T, q registrystore.ReviewQuery, want ...review.Review) {
	t.Helper()
	if q.Limit == 0 {
		q.Limit = 100
	}
	got, err := s.Reviews.List(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Reviews) != len(want) || len(want) > 0 && !reflect.DeepEqual(got.Reviews, want) {
		t.Errorf("List(%+v) is\n%+v, want\n%+v", q, got.Reviews, want)
	}
}

func approved(r review.Review) review.Review {
	r.State, r.Replaced, r.DecidedBy, r.DecidedAt, r.Comment, r.Rule = review.Approved, []byte(`{}`), "bea", hour(50),
		"well done", "rule"
	return r
}

func hasNoReviews(t *testing.T, s ReviewStores) {
	t.Helper()
	s.want(t, registrystore.ReviewQuery{})
	if _, err := s.Reviews.Get(t.Context(), reviewID(1)); !fault.Is(err, fault.NotFound) {
		t.Errorf("Get: %v, want fault.NotFound", err)
	}
	if _, err := s.Reviews.PendingOf(t.Context(), name(t, "com.example/a"), version(t, "1.0.0")); !fault.Is(err,
		fault.NotFound) {
		t.Errorf("PendingOf: %v, want fault.NotFound", err)
	}
	if err := s.Reviews.Decide(t.Context(), newReview(t, 1, "com.example/a", "ada")); !fault.Is(err, fault.Conflict) {
		t.Errorf("Decide: %v, want fault.Conflict", err)
	}
	if err := s.Rules.Remove(t.Context(), "x"); !fault.Is(err, fault.NotFound) {
		t.Errorf("Remove: %v, want fault.NotFound", err)
	}
}

func keepsReviewFields(t *testing.T, s ReviewStores) {
	t.Helper()
	plain := newReview(t, 1, "com.example/a", "ada")
	full := approved(newReview(t, 2, "com.example/b", "oidc:x"))
	full.Kind = review.Replacement
	full.Checks = []review.Check{{RegistryType: "npm", Identifier: "a", State: review.CheckFailed, Message: "é"}}
	full.Submitter.Policy, full.Submitter.Makers = "policy", []registry.Holder{"ada", "bea"}
	full.Request = review.Request{Reason: "For é.", Source: "https://example.com/server.json"}
	s.add(t, plain, full)
	s.want(t, registrystore.ReviewQuery{}, plain, full)
	brief := []review.Review{plain, full}
	for i := range brief {
		brief[i].Document, brief[i].Replaced = nil, nil
	}
	s.want(t, registrystore.ReviewQuery{Brief: true, Bytes: 1}, brief...)
	for _, want := range []review.Review{plain, full} {
		if got, err := s.Reviews.Get(t.Context(), want.ID); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("Get is %+v, %v, want %+v", got, err, want)
		}
	}
	if got, err := s.Reviews.PendingOf(t.Context(), plain.Name, plain.Version); err != nil ||
		!reflect.DeepEqual(got, plain) {
		t.Errorf("PendingOf is %+v, %v, want %+v", got, err, plain)
	}
	if _, err := s.Reviews.PendingOf(t.Context(), full.Name, full.Version); !fault.Is(err, fault.NotFound) {
		t.Errorf("PendingOf a decided review: %v, want fault.NotFound", err)
	}
}

func returnsReviewCopies(t *testing.T, s ReviewStores) {
	t.Helper()
	r := newReview(t, 1, "com.example/a", "ada")
	r.Submitter.Makers = []registry.Holder{"bea"}
	s.add(t, r)
	got, err := s.Reviews.Get(t.Context(), r.ID)
	if err != nil {
		t.Fatal(err)
	}
	got.Document[0], got.Submitter.Makers[0] = 'x', "eve"
	s.want(t, registrystore.ReviewQuery{}, r)
}

func refusesSecondPending(t *testing.T, s ReviewStores) {
	t.Helper()
	first := newReview(t, 1, "com.example/a", "ada")
	s.add(t, first)
	second := newReview(t, 2, "com.example/a", "bea")
	second.Version = first.Version
	if err := s.tryAdd(t.Context(), second, noLimit); !fault.Is(err, fault.Conflict) {
		t.Errorf("a second pending review: %v, want fault.Conflict", err)
	}
	if err := s.Reviews.Decide(t.Context(), approved(first)); err != nil {
		t.Fatal(err)
	}
	s.add(t, second)
	s.want(t, registrystore.ReviewQuery{}, approved(first), second)
}

func limitsPending(t *testing.T, s ReviewStores) {
	t.Helper()
	for n := range 3 {
		s.add(t, newReview(t, n, "com.example/a", "ada"))
	}
	if err := s.tryAdd(t.Context(), newReview(t, 3, "com.example/b", "ada"), 3); !fault.Is(err, fault.Exhausted) {
		t.Errorf("a fourth pending review: %v, want fault.Exhausted", err)
	}
	if err := s.tryAdd(t.Context(), approved(newReview(t, 4, "com.example/b", "ada")), 3); err != nil {
		t.Errorf("a review that is not pending: %v", err)
	}
	if err := s.tryAdd(t.Context(), newReview(t, 5, "com.example/b", "bea"), 3); err != nil {
		t.Errorf("a review of another submitter: %v", err)
	}
	request := newReview(t, 7, "com.example/c", "ada")
	request.Request = review.Request{Reason: "We need it.", Source: "https://example.com/server.json"}
	if err := s.tryAdd(t.Context(), request, 1); err != nil {
		t.Errorf("a request: %v", err)
	}
	request.ID, request.Name = reviewID(8), name(t, "com.example/d")
	if err := s.tryAdd(t.Context(), request, 1); !fault.Is(err, fault.Exhausted) {
		t.Errorf("another request: %v, want fault.Exhausted", err)
	}
	if err := s.Reviews.Decide(t.Context(), approved(newReview(t, 0, "com.example/a", "ada"))); err != nil {
		t.Fatal(err)
	}
	if err := s.tryAdd(t.Context(), newReview(t, 6, "com.example/b", "ada"), 3); err != nil {
		t.Errorf("after a decision: %v", err)
	}
}

func addsOnePending(t *testing.T, s ReviewStores) {
	t.Helper()
	var added atomic.Int64
	inParallel(func(n int) {
		r := newReview(t, n, "com.example/a", fmt.Sprint("person", n))
		r.Version = version(t, "1.0.0")
		switch err := s.tryAdd(t.Context(), r, noLimit); {
		case err == nil:
			added.Add(1)
		case !fault.Is(err, fault.Conflict):
			t.Errorf("Add: %v, want fault.Conflict", err)
		}
	})
	if added.Load() != 1 {
		t.Errorf("%d reviews were added, want one", added.Load())
	}
}

func limitsPendingInParallel(t *testing.T, s ReviewStores) {
	t.Helper()
	var added atomic.Int64
	inParallel(func(n int) {
		switch err := s.tryAdd(t.Context(), newReview(t, n, "com.example/a", "ada"), 5); {
		case err == nil:
			added.Add(1)
		case !fault.Is(err, fault.Exhausted):
			t.Errorf("Add: %v, want fault.Exhausted", err)
		}
	})
	if added.Load() != 5 {
		t.Errorf("%d reviews were added, want the limit of 5", added.Load())
	}
}

func storesDecision(t *testing.T, s ReviewStores) {
	t.Helper()
	r, other := newReview(t, 1, "com.example/a", "ada"), newReview(t, 2, "com.example/a", "ada")
	s.add(t, r, other)
	if err := s.Reviews.Decide(t.Context(), approved(r)); err != nil {
		t.Fatal(err)
	}
	s.want(t, registrystore.ReviewQuery{}, approved(r), other)
}

func refusesSecondDecision(t *testing.T, s ReviewStores) {
	t.Helper()
	r := newReview(t, 1, "com.example/a", "ada")
	s.add(t, r)
	rejected := approved(r)
	rejected.State = review.Rejected
	if err := s.Reviews.Decide(t.Context(), rejected); err != nil {
		t.Fatal(err)
	}
	if err := s.Reviews.Decide(t.Context(), approved(r)); !fault.Is(err, fault.Conflict) {
		t.Errorf("a second decision: %v, want fault.Conflict", err)
	}
	s.want(t, registrystore.ReviewQuery{}, rejected)
}

func listsRefused(t *testing.T, s ReviewStores) {
	t.Helper()
	refused, changed := approved(newReview(t, 2, "com.example/a", "ada")), approved(newReview(t, 3, "com.example/a", "ada"))
	refused.State, changed.State = review.Rejected, review.ChangesRequested
	s.add(t, newReview(t, 1, "com.example/a", "ada"), refused, changed, approved(newReview(t, 4, "com.example/a", "ada")))
	s.want(t, registrystore.ReviewQuery{Refused: true}, refused, changed)
	s.want(t, registrystore.ReviewQuery{State: review.ChangesRequested}, changed)
}

func listsReviews(t *testing.T, s ReviewStores) {
	t.Helper()
	a, b := newReview(t, 1, "com.example/a", "ada"), newReview(t, 2, "com.example/b", "bea")
	c, d := newReview(t, 3, "com.exampleB/c", "cem"), approved(newReview(t, 4, "com.example/a", "ada"))
	c.Submitter.Makers = []registry.Holder{"dan", "e_e"}
	s.add(t, d, c, b, a)
	pattern := func(p string) registry.Pattern {
		parsed, err := registry.ParsePattern(p)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	patterns := func(list ...string) (all []registry.Pattern) {
		for _, p := range list {
			all = append(all, pattern(p))
		}
		return all
	}
	s.want(t, registrystore.ReviewQuery{}, a, b, c, d)
	s.want(t, registrystore.ReviewQuery{State: review.Pending}, a, b, c)
	s.want(t, registrystore.ReviewQuery{State: review.Rejected})
	s.want(t, registrystore.ReviewQuery{Patterns: patterns("com.example/*")}, a, b, d)
	s.want(t, registrystore.ReviewQuery{Patterns: patterns("com.example/b", "com.exampleB*")}, b, c)
	s.want(t, registrystore.ReviewQuery{Patterns: patterns("*")}, a, b, c, d)
	s.want(t, registrystore.ReviewQuery{Submitter: "cem"}, c)
	s.want(t, registrystore.ReviewQuery{Submitter: "dan"}, c) // by a policy
	s.want(t, registrystore.ReviewQuery{Submitter: "e_e", Patterns: patterns("com.example/b")}, b, c)
	for _, nobody := range []string{"an", "da", "eve", "d%", `dan","e_e`, "null"} {
		s.want(t, registrystore.ReviewQuery{Submitter: nobody})
	}
	s.want(t, registrystore.ReviewQuery{Name: b.Name}, b)
	s.want(t, registrystore.ReviewQuery{Name: b.Name, Patterns: patterns("com.example/a"), Submitter: "nobody"})
	s.want(t, registrystore.ReviewQuery{
		State: review.Pending, Patterns: patterns("com.example/b"), Submitter: "ada",
	}, a, b)
	s.want(t, registrystore.ReviewQuery{After: b.SubmittedAt, AfterID: b.ID}, c, d)
	s.want(t, registrystore.ReviewQuery{After: b.SubmittedAt}, b, c, d)
	s.want(t, registrystore.ReviewQuery{Newest: true}, d, c, b, a)
	s.want(t, registrystore.ReviewQuery{Newest: true, After: c.SubmittedAt, AfterID: c.ID}, b, a)
	s.want(t, registrystore.ReviewQuery{Decided: true}, d)
	s.want(t, registrystore.ReviewQuery{Within: pattern("com.example/*")}, a, b, d)
	s.want(t, registrystore.ReviewQuery{Kind: review.NewServer})
	s.want(t, registrystore.ReviewQuery{Kind: review.NewVersion, Until: c.SubmittedAt}, a, b)
	s.want(t, registrystore.ReviewQuery{By: "dan"}, c)
	s.want(t, registrystore.ReviewQuery{For: "ada"}, b, c)
	s.want(t, registrystore.ReviewQuery{For: "dan", State: review.Pending}, a, b)
	s.want(t, registrystore.ReviewQuery{For: "eve", State: review.Pending}, a, b, c)
	s.want(t, registrystore.ReviewQuery{By: "ada", Patterns: patterns("com.example/a"), Submitter: "bea"}, a, d)
	for by, want := range map[string]map[review.State]int{
		"": {review.Pending: 3, review.Approved: 1}, "ada": {review.Pending: 1, review.Approved: 1}, "eve": {},
	} {
		q := registrystore.ReviewQuery{By: by, Limit: 1, After: d.SubmittedAt}
		if got, err := s.Backlog.Count(t.Context(), q); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("by %q there are %v, %v, want %v", by, got, err, want)
		}
	}
}

func readsReviewPages(t *testing.T, s ReviewStores) {
	t.Helper()
	var all []review.Review
	for n := range 7 {
		r := newReview(t, n, "com.example/a", "ada")
		r.SubmittedAt = hour(n / 3) // equal times are ordered by ID
		all = append(all, r)
	}
	for _, r := range slices.Backward(all) {
		s.add(t, r)
	}
	for limit := 1; limit <= len(all); limit++ {
		var got []review.Review
		for q := (registrystore.ReviewQuery{Limit: limit}); ; {
			p, err := s.Reviews.List(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			if got = append(got, p.Reviews...); !p.More {
				break
			}
			last := p.Reviews[len(p.Reviews)-1]
			q.After, q.AfterID = last.SubmittedAt, last.ID
		}
		if !reflect.DeepEqual(got, all) {
			t.Errorf("pages of %d give\n%+v, want\n%+v", limit, got, all)
		}
	}
}

func endsReviewPages(t *testing.T, s ReviewStores) {
	t.Helper()
	for n := range 3 {
		s.add(t, newReview(t, n, "com.example/a", "ada"))
	}
	size := len(newReview(t, 0, "com.example/a", "ada").Document)
	for bytes, want := range map[int]int{1: 1, size: 1, size + 1: 2, 3 * size: 3, 0: 3} {
		p, err := s.Reviews.List(t.Context(), registrystore.ReviewQuery{Limit: 10, Bytes: bytes})
		if err != nil || len(p.Reviews) != want || p.More != (want < 3) {
			t.Errorf("a page of %d bytes has %d reviews, more %v, %v, want %d", bytes, len(p.Reviews),
				p.More, err, want)
		}
	}
}

func rollsReviewsBack(t *testing.T, s ReviewStores) {
	t.Helper()
	r := newReview(t, 1, "com.example/a", "ada")
	s.add(t, r)
	broken := errors.New("broken")
	err := s.Runner.Atomically(t.Context(), func(ctx context.Context) error {
		if err := s.Reviews.Decide(ctx, approved(r)); err != nil {
			return err
		}
		if err := s.Reviews.Add(ctx, newReview(t, 2, "com.example/a", "ada"), noLimit); err != nil {
			return err
		}
		return broken
	})
	if !errors.Is(err, broken) {
		t.Errorf("Atomically: %v, want the error of the transaction", err)
	}
	s.want(t, registrystore.ReviewQuery{}, r)
}

func refusesReviewsOfCanceled(t *testing.T, s ReviewStores) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Reviews.Get(ctx, reviewID(1)); !errors.Is(err, context.Canceled) {
		t.Errorf("Get: %v, want context.Canceled", err)
	}
	if _, err := s.Reviews.List(ctx, registrystore.ReviewQuery{Limit: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("List: %v, want context.Canceled", err)
	}
	if err := s.Reviews.Decide(ctx, newReview(t, 1, "com.example/a", "ada")); !errors.Is(err, context.Canceled) {
		t.Errorf("Decide: %v, want context.Canceled", err)
	}
}
