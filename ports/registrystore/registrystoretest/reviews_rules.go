package registrystoretest

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/review"
)

func keepsRules(t *testing.T, s ReviewStores) {
	t.Helper()
	all, err := registry.ParsePattern("*")
	if err != nil {
		t.Fatal(err)
	}
	first := review.Rule{ID: "b", Pattern: all, When: review.Any, CreatedAt: hour(1)}
	second := review.Rule{ID: "a", Pattern: all, Publisher: "ada", When: review.SameOrigins, CreatedAt: hour(2)}
	for _, r := range []review.Rule{second, first} {
		if err := s.Rules.Add(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := s.Rules.All(t.Context()); err != nil || !slices.Equal(got, []review.Rule{first, second}) {
		t.Errorf("Rules is %+v, %v, want the oldest first", got, err)
	}
	if err := s.Rules.Remove(t.Context(), first.ID); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Rules.All(t.Context()); err != nil || !slices.Equal(got, []review.Rule{second}) {
		t.Errorf("Rules is %+v, %v, want one", got, err)
	}
}

func keepsNotices(t *testing.T, s ReviewStores) {
	t.Helper()
	want := func(want time.Time) {
		t.Helper()
		if got, err := s.Notices.Last(t.Context(), "bea"); err != nil || !got.At.Equal(want) {
			t.Errorf("Last is %v, %v, want %v", got, err, want)
		}
	}
	want(time.Time{})
	for _, step := range []struct {
		last, now time.Time
		refused   bool
	}{
		{hour(1), hour(2), true}, {time.Time{}, hour(1), false}, {time.Time{}, hour(2), true}, {
			hour(1), hour(3), false,
		}, {hour(1), hour(4), true},
	} {
		err := s.Notices.Record(t.Context(), "bea", step.last, step.now)
		if fault.Is(err, fault.Conflict) != step.refused || !step.refused && err != nil {
			t.Errorf("Record after %v: %v, want refused %v", step.last, err, step.refused)
		}
	}
	want(hour(3))
	if got, err := s.Notices.Last(t.Context(), "ada"); err != nil || !got.At.IsZero() {
		t.Errorf("Last of another reviewer is %v, %v, want none", got, err)
	}
}

func keepsMail(t *testing.T, s ReviewStores) {
	t.Helper()
	want := func(who registry.Holder, at time.Time, m review.Mail) {
		t.Helper()
		got, err := s.Notices.Last(t.Context(), who)
		if err != nil || !got.At.Equal(at) || got.Mail != m {
			t.Errorf("Last of %s is %+v, %v, want %s at %v", who, got, err, m, at)
		}
	}
	want("ada", time.Time{}, review.AtOnce)
	if err := errors.Join(s.Notices.Record(t.Context(), "ada", time.Time{}, hour(1)), s.Notices.Choose(t.Context(), "ada", review.Daily, hour(2)),
		s.Notices.Choose(t.Context(), "bea", review.NoMail, hour(2))); err != nil {
		t.Fatal(err)
	}
	want("ada", hour(1), review.Daily)
	want("bea", hour(2), review.NoMail)
	if err := s.Notices.Record(t.Context(), "ada", hour(1), hour(3)); err != nil {
		t.Fatal(err)
	}
	want("ada", hour(3), review.Daily)
}

func recordsNoticeOnce(t *testing.T, s ReviewStores) {
	t.Helper()
	for n, last := range []time.Time{{}, hour(0), hour(1)} {
		var sent atomic.Int64
		inParallel(func(int) {
			switch err := s.Notices.Record(t.Context(), "bea", last, hour(n)); {
			case err == nil:
				sent.Add(1)
			case !fault.Is(err, fault.Conflict):
				t.Errorf("Record: %v, want fault.Conflict", err)
			}
		})
		if sent.Load() != 1 {
			t.Errorf("%d notices after %v, want one", sent.Load(), last)
		}
	}
}
