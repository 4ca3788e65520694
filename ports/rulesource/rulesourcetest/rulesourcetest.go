// Package rulesourcetest is the contract suite of the rule source port. Every adapter that delivers configuration runs it;
// it tests what they share, not how one of them reaches where its configuration is kept.
package rulesourcetest

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
	"github.com/tollgate-dev/tollgate/ports/rulesource"
)

// Subject is a source under test, without any configuration yet.
type Subject struct {
	Source rulesource.Source
	// Offer puts a configuration of these domains in place of the one before, each in a part of its own with one
	// descriptor "k" of ten requests a minute. None is an empty configuration.
	Offer func(t *testing.T, domains ...string)
	// OfferUnreadable is Offer, with a part beside them that cannot be read.
	OfferUnreadable func(t *testing.T, domains ...string)
}

// patience is how long a test waits for what must come.
const patience = 30 * time.Second

// Run runs the suite. open returns a subject and registers its own cleanup.
func Run(t *testing.T, open func(t *testing.T) Subject) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, Subject){
		"has none before there is one":        hasNone,
		"delivers the present one first":      deliversPresent,
		"delivers one that comes later":       deliversLater,
		"delivers each change whole":          deliversChanges,
		"delivers an empty one":               deliversEmpty,
		"goes on after a refusal":             goesOn,
		"delivers what cannot be read":        deliversUnreadable,
		"says what was written":               saysWhatWasWritten,
		"delivers the present one each watch": deliversAgain,
		"ends with its context":               endsWithContext,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

// delivery is one configuration as it came.
type delivery []ruleset.Source

func (d delivery) domains() []string {
	names := []string{}
	for _, s := range d {
		if !s.Unread {
			names = append(names, s.Domain.Value)
		}
	}
	slices.Sort(names)
	return names
}

// watched is a Watch that runs.
type watched struct {
	deliveries chan delivery
	refusing   atomic.Bool // answer with an error
	applying   atomic.Int32
	overlapped atomic.Bool // apply was called twice at once
	end        func()
	ended      chan error
}

// watch begins to watch, until the test ends or end is called.
func watch(t *testing.T, s Subject) *watched {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	w := &watched{deliveries: make(chan delivery, 1000), end: end, ended: make(chan error, 1)}
	go func() { w.ended <- s.Source.Watch(ctx, w.apply) }()
	t.Cleanup(func() { w.stop(t) })
	return w
}

func (w *watched) apply(sources []ruleset.Source) error {
	if w.applying.Add(1) > 1 {
		w.overlapped.Store(true)
	}
	defer w.applying.Add(-1)
	w.deliveries <- sources
	if w.refusing.Load() {
		return errors.New("refused by the test")
	}
	return nil
}

// stop ends the watch, which must return nil.
func (w *watched) stop(t *testing.T) {
	t.Helper()
	w.end()
	select {
	case err := <-w.ended:
		if err != nil {
			t.Errorf("a watch whose context is done returns %v", err)
		}
		if w.overlapped.Load() {
			t.Error("apply was called twice at once")
		}
		w.ended <- nil // for the cleanup
	case <-time.After(patience):
		t.Error("a watch whose context is done does not return")
	}
}

// await returns the first delivery of exactly these domains. Before it may come what was there earlier, or was seen while
// the change was made.
func (w *watched) await(t *testing.T, domains ...string) delivery {
	t.Helper()
	return w.awaitThat(t, func(d delivery) bool { return slices.Equal(d.domains(), append([]string{}, domains...)) })
}

func (w *watched) awaitThat(t *testing.T, wanted func(delivery) bool) delivery {
	t.Helper()
	deadline := time.After(patience)
	var last delivery
	for {
		select {
		case last = <-w.deliveries:
			if wanted(last) {
				return last
			}
		case err := <-w.ended:
			w.ended <- err
			t.Fatalf("the watch ended with %v", err)
		case <-deadline:
			t.Fatalf("what is wanted does not come; last delivered %q", last.domains())
		}
	}
}

func hasNone(t *testing.T, s Subject) {
	if _, err := s.Source.Load(t.Context()); !fault.Is(err, fault.NotFound) {
		t.Errorf("Load without any configuration: %v, want fault.NotFound", err)
	}
}

func deliversPresent(t *testing.T, s Subject) {
	s.Offer(t, "a", "b")
	w := watch(t, s)
	w.await(t, "a", "b")
	got, err := s.Source.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if names := delivery(got).domains(); !slices.Equal(names, []string{"a", "b"}) {
		t.Errorf("Load returns %q", names)
	}
}

func deliversLater(t *testing.T, s Subject) {
	w := watch(t, s)
	s.Offer(t, "late")
	w.await(t, "late")
}

func deliversChanges(t *testing.T, s Subject) {
	s.Offer(t, "a")
	w := watch(t, s)
	w.await(t, "a")
	for _, domains := range [][]string{{"a", "b"}, {"b", "c"}, {"c"}, {"a"}} {
		s.Offer(t, domains...)
		w.await(t, domains...)
	}
}

func deliversEmpty(t *testing.T, s Subject) {
	s.Offer(t)
	w := watch(t, s)
	w.await(t)
	s.Offer(t, "a")
	w.await(t, "a")
	s.Offer(t)
	w.await(t)
}

func goesOn(t *testing.T, s Subject) {
	s.Offer(t, "good")
	w := watch(t, s)
	w.await(t, "good")
	w.refusing.Store(true)
	s.Offer(t, "bad")
	w.await(t, "bad")
	w.refusing.Store(false)
	s.Offer(t, "better")
	w.await(t, "better")
}

func deliversUnreadable(t *testing.T, s Subject) {
	w := watch(t, s)
	s.OfferUnreadable(t, "a", "b")
	w.awaitThat(t, func(d delivery) bool {
		return slices.Equal(d.domains(), []string{"a", "b"}) &&
			slices.ContainsFunc(d, func(part ruleset.Source) bool { return part.Unread && len(part.Faults) > 0 })
	})
}

func saysWhatWasWritten(t *testing.T, s Subject) {
	s.Offer(t, "a")
	got := watch(t, s).await(t, "a")
	d := got[0].Descriptors
	if len(d) != 1 || d[0].Key.Value != "k" || d[0].Limit == nil || d[0].Limit.Unit == nil || d[0].Limit.Requests.Count != 10 {
		t.Errorf("delivered %+v", d)
	}
	if got[0].At.File == "" || got[0].Domain.At.File == "" {
		t.Errorf("the source does not say where it is: %+v", got[0])
	}
	if _, err := ruleset.Compile(got, ruleset.Options{}); err != nil {
		t.Errorf("it does not compile: %v", err)
	}
}

func deliversAgain(t *testing.T, s Subject) {
	s.Offer(t, "a")
	first := watch(t, s)
	first.await(t, "a")
	first.stop(t)
	watch(t, s).await(t, "a")
}

func endsWithContext(t *testing.T, s Subject) {
	watch(t, s).stop(t) // before there is anything
	s.Offer(t, "a")
	w := watch(t, s)
	w.await(t, "a")
	w.stop(t)
}
