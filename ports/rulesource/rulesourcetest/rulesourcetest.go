// Package rulesourcetest has the contract tests of ports/rulesource. Every adapter of the port runs
// them. They test what the port promises, not how an adapter reaches its configuration.
package rulesourcetest

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
	"github.com/tollgate-dev/tollgate/ports/rulesource"
	"github.com/tollgate-dev/tollgate/test/await"
)

// Subject is a source under test, without any configuration yet.
type Subject struct {
	Source rulesource.Source
	// Offer replaces the configuration by one with these domains. Each domain is in a separate part
	// and has one descriptor "k" of ten requests per minute. Without domains the configuration is
	// empty.
	Offer func(t *testing.T, domains ...string)
	// OfferUnreadable is like Offer, with one more part that cannot be read.
	OfferUnreadable func(t *testing.T, domains ...string)
}

// Run runs the suite. open returns a subject and registers its own cleanup.
func Run(t *testing.T, open func(t *testing.T) Subject) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, Subject){
		"a source without a configuration reports that there is none": findsNoConfiguration,
		"a watch begins with the current configuration":               deliversCurrent,
		"a configuration that appears later is delivered":             deliversLater,
		"each change is delivered as a whole":                         deliversChanges,
		"an empty configuration is delivered":                         deliversEmpty,
		"a watch goes on after a refused configuration":               continuesAfterRefusal,
		"a part that cannot be read is delivered as such":             deliversUnreadable,
		"content and location of each file are kept":                  keepsContent,
		"each watch begins with the current configuration":            deliversAgain,
		"a watch ends when its context is cancelled":                  endsWithContext,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

// delivery is one delivered configuration.
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

// watched is a running Watch.
type watched struct {
	deliveries chan delivery
	refusing   atomic.Bool // answer with an error
	applying   atomic.Int32
	overlapped atomic.Bool // apply was called twice at once
	end        func()
	ended      chan error
}

// startWatch starts a Watch that runs until the test ends or end is called.
func startWatch(t *testing.T, s Subject) *watched {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	w := &watched{deliveries: make(chan delivery, 1000), end: end, ended: make(chan error, 1)}
	go func() {
		w.ended <- s.Source.Watch(ctx, w.apply)
		close(w.deliveries)
	}()
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
	if err := await.Receive(t, "the end of a watch whose context is done", w.ended); err != nil {
		t.Errorf("a watch whose context is done returns %v", err)
	}
	if w.overlapped.Load() {
		t.Error("apply was called twice at once")
	}
	w.ended <- nil // for the cleanup
}

// await returns the first delivery with exactly these domains. Earlier deliveries may have the
// previous configuration, or a state in the middle of the change.
func (w *watched) await(t *testing.T, domains ...string) delivery {
	t.Helper()
	return w.awaitThat(t, func(d delivery) bool { return slices.Equal(d.domains(), append([]string{}, domains...)) })
}

func (w *watched) awaitThat(t *testing.T, wanted func(delivery) bool) delivery {
	t.Helper()
	for {
		d := await.Receive(t, "a watch that delivers the expected configuration", w.deliveries)
		if wanted(d) {
			return d
		}
		t.Logf("the domains %q are delivered", d.domains())
	}
}

func findsNoConfiguration(t *testing.T, s Subject) {
	if _, err := s.Source.Load(t.Context()); !fault.Is(err, fault.NotFound) {
		t.Errorf("Load without any configuration: %v, want fault.NotFound", err)
	}
}

func deliversCurrent(t *testing.T, s Subject) {
	s.Offer(t, "a", "b")
	w := startWatch(t, s)
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
	w := startWatch(t, s)
	s.Offer(t, "late")
	w.await(t, "late")
}

func deliversChanges(t *testing.T, s Subject) {
	s.Offer(t, "a")
	w := startWatch(t, s)
	w.await(t, "a")
	for _, domains := range [][]string{{"a", "b"}, {"b", "c"}, {"c"}, {"a"}} {
		s.Offer(t, domains...)
		w.await(t, domains...)
	}
}

func deliversEmpty(t *testing.T, s Subject) {
	s.Offer(t)
	w := startWatch(t, s)
	w.await(t)
	s.Offer(t, "a")
	w.await(t, "a")
	s.Offer(t)
	w.await(t)
}

func continuesAfterRefusal(t *testing.T, s Subject) {
	s.Offer(t, "good")
	w := startWatch(t, s)
	w.await(t, "good")
	w.refusing.Store(true)
	s.Offer(t, "bad")
	w.await(t, "bad")
	w.refusing.Store(false)
	s.Offer(t, "better")
	w.await(t, "better")
}

func deliversUnreadable(t *testing.T, s Subject) {
	w := startWatch(t, s)
	s.OfferUnreadable(t, "a", "b")
	w.awaitThat(t, func(d delivery) bool {
		return slices.Equal(d.domains(), []string{"a", "b"}) &&
			slices.ContainsFunc(d, func(part ruleset.Source) bool { return part.Unread && len(part.Faults) > 0 })
	})
}

func keepsContent(t *testing.T, s Subject) {
	s.Offer(t, "a")
	got := startWatch(t, s).await(t, "a")
	d := got[0].Descriptors
	if len(d) != 1 || d[0].Key.Value != "k" || d[0].Limit == nil || d[0].Limit.Unit == nil ||
		d[0].Limit.Requests.Count != 10 {
		t.Errorf("delivered %+v", d)
	}
	if got[0].At.File == "" || got[0].Domain.At.File == "" {
		t.Errorf("the source has no location: %+v", got[0])
	}
	if _, err := ruleset.Compile(got, ruleset.Options{}); err != nil {
		t.Errorf("it does not compile: %v", err)
	}
}

func deliversAgain(t *testing.T, s Subject) {
	s.Offer(t, "a")
	first := startWatch(t, s)
	first.await(t, "a")
	first.stop(t)
	startWatch(t, s).await(t, "a")
}

func endsWithContext(t *testing.T, s Subject) {
	startWatch(t, s).stop(t) // before there is anything
	s.Offer(t, "a")
	w := startWatch(t, s)
	w.await(t, "a")
	w.stop(t)
}
