package registrystoretest

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// store stores versions of one server, each with its name and version as its document.
func (s ReviewStores) store(t *testing.T, releases ...registry.Release) {
	t.Helper()
	err := s.Runner.Atomically(t.Context(), func(ctx context.Context) error {
		if _, err := s.Writer.Lock(ctx, releases[0].Name); err != nil {
			return err
		}
		changes := make([]registrystore.Change, len(releases))
		for i, r := range releases {
			changes[i] = registrystore.Change{Release: r, Document: documentOf(r)}
		}
		return s.Writer.Save(ctx, changes)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func documentOf(r registry.Release) []byte {
	return fmt.Appendf(nil, `{"of":"%s@%s"}`, r.Name, r.Version)
}

func findsCompared(t *testing.T, s ReviewStores) {
	t.Helper()
	old, latest := release(t, "com.example/a", "1.0.0", 1), release(t, "com.example/a", "2.0.0", 2)
	latest.Latest = true
	deleted := release(t, "com.example/b", "1.0.0", 1)
	deleted.Status, deleted.Latest = registry.StatusDeleted, true
	s.store(t, old, latest)
	s.store(t, deleted)
	pending := make([]review.Review, 6)
	for i, c := range []struct {
		kind            review.Kind
		server, version string
	}{
		{review.NewVersion, "com.example/b", "2.0.0"},  // after a deleted version
		{review.Replacement, "com.example/a", "1.0.0"}, // of a version that is not the latest
		{review.NewServer, "com.example/c", "1.0.0"},
		{review.NewVersion, "com.example/a", "3.0.0"},
		{review.NewVersion, "com.example/none", "2.0.0"},  // its server is gone
		{review.Replacement, "com.example/a", "2.0.0-rc"}, // likewise, its version
	} {
		pending[i] = newReview(t, 10-i, c.server, "ada")
		pending[i].Kind, pending[i].Version = c.kind, version(t, c.version)
	}
	s.add(t, pending...)
	want := [][]byte{documentOf(deleted), documentOf(old), nil, documentOf(latest), nil, nil}
	if got, err := s.Reviews.Compared(t.Context(), pending); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("Compared is %q, %v, want %q", got, err, want)
	}
	if got, err := s.Reviews.Compared(t.Context(), pending[2:3]); err != nil || len(got) != 1 || got[0] != nil {
		t.Errorf("Compared of a new server is %q, %v, want nothing", got, err)
	}
	if got, err := s.Reviews.Compared(t.Context(), nil); err != nil || len(got) != 0 {
		t.Errorf("Compared of no reviews is %q, %v", got, err)
	}
}

func countsPending(t *testing.T, s ReviewStores) {
	t.Helper()
	want := func(want int) {
		t.Helper()
		if n, err := s.Backlog.CountPending(t.Context()); err != nil || n != want {
			t.Errorf("CountPending is %d, %v, want %d", n, err, want)
		}
	}
	want(0)
	first, second := newReview(t, 1, "com.example/a", "ada"), newReview(t, 2, "com.example/b", "bea")
	s.add(t, first, second, approved(newReview(t, 3, "com.example/c", "ada")))
	want(2)
	if err := s.Reviews.Decide(t.Context(), approved(first)); err != nil {
		t.Fatal(err)
	}
	want(1)
}

func listsOperatorDecisions(t *testing.T, s ReviewStores) {
	t.Helper()
	decided := func(n int, by string) review.Review {
		r := approved(newReview(t, n, "com.example/a", "ada"))
		r.DecidedBy, r.DecidedAt = by, hour(100-n)
		return r
	}
	last, middle, first := decided(1, review.Operator), decided(2, review.Operator), decided(3, review.Operator)
	middle.Submitter.Policy, middle.Submitter.Makers = "policy", []registry.Holder{"bea"}
	s.add(t, last, decided(4, "bea"), middle, first, newReview(t, 5, "com.example/a", "ada"))
	want := func(after, until, limit int, want ...review.Review) {
		t.Helper()
		for i := range want {
			want[i].Document, want[i].Replaced = nil, nil
		}
		got, err := s.Backlog.DecidedByOperator(t.Context(), hour(after), hour(until), limit)
		if err != nil ||
			!slices.EqualFunc(got, want, func(a, b review.Review) bool { return reflect.DeepEqual(a, b) }) {
			t.Errorf("DecidedByOperator(%d, %d) is\n%+v, %v, want\n%+v", after, until, got, err, want)
		}
	}
	want(0, 200, 10, first, middle, last)
	want(0, 200, 2, first, middle)
	want(97, 98, 10, middle)
	want(99, 200, 10)
	want(0, 96, 10)
}
