package review_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/review"
)

var now = time.Date(2026, 11, 23, 12, 0, 0, 123_456_789, time.UTC)

// people may submit and decide.
var people = []registry.Holder{"ada", "bea", "cem", review.Operator}

// drawReview returns any review.
func drawReview(t *rapid.T) review.Review {
	r := review.Review{
		ID: "id",
		State: rapid.SampledFrom([]review.State{
			review.Pending, review.Approved, review.Rejected, review.Superseded,
		}).Draw(t, "state"),
		Submitter: review.Submitter{Key: string(rapid.SampledFrom(people[:3]).Draw(t, "submitter"))},
	}
	if rapid.Bool().Draw(t, "by a publisher") {
		r.Submitter = review.Submitter{
			Key: "dns:example.com", Policy: "policy",
			Makers: rapid.SliceOf(rapid.SampledFrom(people[:3])).Draw(t, "makers"),
		}
	}
	return r
}

// TestDecide checks that only a pending review is decided, that no one decides about an own one,
// and that a decision keeps what was submitted.
func TestDecide(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := drawReview(t)
		by := rapid.SampledFrom(people).Draw(t, "decider")
		d := review.Decision{Approve: rapid.Bool().Draw(t, "approve"), Changes: rapid.Bool().Draw(t, "changes"), By: string(by), Comment: "why", At: now}
		got, err := r.Decide(d)
		own := r.Submitter.Key == string(by) || slices.Contains(r.Submitter.Makers, by)
		switch {
		case r.State != review.Pending:
			if !fault.Is(err, fault.Conflict) {
				t.Fatalf("a decision about a review that is %s: %v, want fault.Conflict", r.State, err)
			}
		case own:
			if !fault.Is(err, fault.Forbidden) {
				t.Fatalf("a decision about an own review: %v, want fault.Forbidden", err)
			}
		default:
			want := review.Rejected
			switch {
			case d.Approve:
				want = review.Approved
			case d.Changes:
				want = review.ChangesRequested
			}
			if err != nil || got.State != want || got.DecidedBy != d.By || got.Comment != "why" ||
				!got.DecidedAt.Equal(now.Truncate(time.Microsecond)) {
				t.Fatalf("Decide = %+v, %v, want %s", got, err, want)
			}
			if got.ID != r.ID || got.Submitter.Key != r.Submitter.Key || got.Rule != "" {
				t.Fatalf("Decide changed %+v to %+v", r, got)
			}
		}
	})
}

// TestOtherTransitions checks that a review that is not pending neither is superseded nor approved
// by a rule.
func TestOtherTransitions(t *testing.T) {
	t.Parallel()
	for _, state := range []review.State{review.Pending, review.Approved, review.Rejected, review.ChangesRequested, review.Superseded} {
		r := review.Review{State: state}
		superseded, supersedeErr := r.Supersede(now)
		approved, approveErr := r.ApproveByRule("rule", now)
		if state != review.Pending {
			if !fault.Is(supersedeErr, fault.Conflict) || !fault.Is(approveErr, fault.Conflict) {
				t.Errorf("%s: %v and %v, want fault.Conflict", state, supersedeErr, approveErr)
			}
			continue
		}
		if supersedeErr != nil || superseded.State != review.Superseded || superseded.DecidedBy != "" {
			t.Errorf("Supersede = %+v, %v", superseded, supersedeErr)
		}
		if approveErr != nil || approved.State != review.Approved || approved.Rule != "rule" ||
			approved.DecidedBy != "" {
			t.Errorf("ApproveByRule = %+v, %v", approved, approveErr)
		}
	}
}

func TestPeople(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		by   review.Submitter
		want []registry.Holder
	}{
		{review.Submitter{Key: "ada"}, []registry.Holder{"ada"}},
		{
			review.Submitter{Key: "dns:example.com", Policy: "p", Makers: []registry.Holder{"ada", "bea"}},
			[]registry.Holder{"ada", "bea"},
		},
		{review.Submitter{Key: "dns:example.com", Policy: "p"}, nil}, // the policy of an operator
	} {
		if got := c.by.People(); !slices.Equal(got, c.want) {
			t.Errorf("People of %+v = %v, want %v", c.by, got, c.want)
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"pending", "approved", "rejected", "superseded"} {
		if got, err := review.ParseState(s); err != nil || string(got) != s {
			t.Errorf("ParseState(%q) = %q, %v", s, got, err)
		}
	}
	for _, s := range []string{"any", "same-origins"} {
		if got, err := review.ParseWhen(s); err != nil || string(got) != s {
			t.Errorf("ParseWhen(%q) = %q, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "Pending", "all"} {
		if _, err := review.ParseState(s); !fault.Is(err, fault.Invalid) {
			t.Errorf("ParseState(%q): %v, want fault.Invalid", s, err)
		}
		if _, err := review.ParseWhen(s); !fault.Is(err, fault.Invalid) {
			t.Errorf("ParseWhen(%q): %v, want fault.Invalid", s, err)
		}
	}
}

func TestParseComment(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		comment  string
		required bool
		problem  string
	}{
		{"", false, ""},
		{"", true, "comment is required"},
		{" \t\n", true, "comment is required"},
		{" ", false, ""},
		{"why", true, ""},
		{strings.Repeat("é", review.MaxComment), false, ""},
		{strings.Repeat("é", review.MaxComment+1), false, "at most 2000 characters"},
		{"a\x00b", false, "without NUL"},
		{"\xff", false, "without NUL"},
	} {
		got, err := review.ParseComment(c.comment, c.required)
		if c.problem == "" && (err != nil || got != c.comment) {
			t.Errorf("ParseComment(%.20q) = %.20q, %v", c.comment, got, err)
		}
		if c.problem != "" && (!fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), c.problem)) {
			t.Errorf("ParseComment(%.20q): %v, want %q", c.comment, err, c.problem)
		}
	}
}
