package registrystoretest

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// first returns a pending review with the first of two approvals.
func first(r review.Review, by string) review.Review {
	r.First = review.Approval{By: by, At: hour(40), Text: "text"}
	return r
}

func storesTwoApprovals(t *testing.T, s ReviewStores) {
	t.Helper()
	r := newReview(t, 1, "com.example/a", "ada")
	s.add(t, r)
	second := first(approved(r), "cem")
	refused := func(label string, r review.Review) {
		t.Helper()
		if err := s.Reviews.Decide(t.Context(), r); err == nil {
			t.Errorf("%s: it was stored", label)
		}
	}
	refused("a second approval without a first one", second)
	s.want(t, registrystore.ReviewQuery{FirstUntil: hour(50)})
	if err := s.Reviews.Decide(t.Context(), first(r, "cem")); err != nil {
		t.Fatal(err)
	}
	s.want(t, registrystore.ReviewQuery{}, first(r, "cem"))
	s.want(t, registrystore.ReviewQuery{FirstAfter: hour(39), FirstUntil: hour(40)}, first(r, "cem"))
	s.want(t, registrystore.ReviewQuery{For: "cem"})
	s.want(t, registrystore.ReviewQuery{For: "eve"}, first(r, "cem"))
	s.want(t, registrystore.ReviewQuery{FirstAfter: hour(40), FirstUntil: hour(41)})
	s.want(t, registrystore.ReviewQuery{FirstAfter: hour(38), FirstUntil: hour(39)})
	refused("the same first approval", first(r, "cem"))
	refused("an approval of who is not the first", first(approved(r), "eve"))
	other := second
	other.First.Text = "other"
	refused("a second approval of another text", other)
	own := second
	own.DecidedBy = "cem"
	refused("both of one person", own)
	rejected := second
	rejected.State = review.Rejected
	refused("a rejection that keeps it", rejected)
	s.want(t, registrystore.ReviewQuery{}, first(r, "cem"))
	if err := s.Reviews.Decide(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	s.want(t, registrystore.ReviewQuery{}, second)
}

func approvesFirstOnce(t *testing.T, s ReviewStores) {
	t.Helper()
	r := newReview(t, 1, "com.example/a", "ada")
	s.add(t, r)
	var stored atomic.Int64
	inParallel(func(int) {
		switch err := s.Reviews.Decide(t.Context(), first(r, "cem")); {
		case err == nil:
			stored.Add(1)
		case !fault.Is(err, fault.Conflict):
			t.Errorf("Decide: %v, want fault.Conflict", err)
		}
	})
	if stored.Load() != 1 {
		t.Errorf("%d first approvals were stored, want one", stored.Load())
	}
}

func decidesOnce(t *testing.T, s ReviewStores) {
	t.Helper()
	r := newReview(t, 1, "com.example/a", "ada")
	s.add(t, r)
	var decided atomic.Int64
	inParallel(func(n int) {
		d := approved(r)
		d.DecidedBy = fmt.Sprint("person", n)
		switch err := s.Reviews.Decide(t.Context(), d); {
		case err == nil:
			decided.Add(1)
		case !fault.Is(err, fault.Conflict):
			t.Errorf("Decide: %v, want fault.Conflict", err)
		}
	})
	if decided.Load() != 1 {
		t.Errorf("%d decisions were stored, want one", decided.Load())
	}
}
