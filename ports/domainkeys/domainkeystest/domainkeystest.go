// Package domainkeystest has the contract tests of ports/domainkeys. Every adapter runs them, with
// real servers that play the domain. They test what all sources promise, not how they read.
package domainkeystest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/ports/domainkeys"
)

// parallel is the number of concurrent callers.
const parallel = 20

// Subject is a source under test, with the servers of the domains that it reads.
type Subject struct {
	Source domainkeys.Source
	// Publish replaces the texts of a domain.
	Publish func(t *testing.T, d publisher.Domain, texts ...string)
	// Fail makes every further question about a domain fail on the server.
	Fail func(t *testing.T, d publisher.Domain)
	// Hold makes the server answer questions about a domain only after release is called, which may
	// be called more than once.
	Hold func(t *testing.T, d publisher.Domain) (release func())
	// Questions returns how many questions about a domain the server got.
	Questions func(t *testing.T, d publisher.Domain) int
}

// Run runs the suite. open returns a fresh subject and registers its own cleanup. No domain has
// published anything, and none exists.
func Run(t *testing.T, open func(t *testing.T) Subject) {
	t.Helper()
	t.Run("the texts of a domain are returned as they are published", func(t *testing.T) { returnsTexts(t, open(t)) })
	t.Run("texts of other domains are not returned", func(t *testing.T) { readsExactlyTheDomain(t, open(t)) })
	t.Run("a change of the texts is visible at once", func(t *testing.T) { seesChange(t, open(t)) })
	t.Run("an unknown domain has no text", func(t *testing.T) { findsNothing(t, open(t)) })
	t.Run("a failure of the server is reported as unavailable", func(t *testing.T) { reportsFailure(t, open(t)) })
	t.Run("parallel calls for one domain send one query", func(t *testing.T) { sharesQuery(t, open(t)) })
	t.Run("a caller that changes its texts does not change those of others", func(t *testing.T) {
		givesOwnTexts(t, open(t))
	})
	t.Run("a call with a cancelled context fails", func(t *testing.T) { obeysCancel(t, open(t)) })
	t.Run("other callers get the texts after one caller has given up", func(t *testing.T) {
		continuesForOthers(t, open(t))
	})
}

// records are three texts, of which the second is a broken record, and one that is no record.
func records() []string {
	return []string{
		"v=MCPv1; k=ed25519; p=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "v=MCPv1; k=ed25519; p=###",
		"v=MCPv1; k=ecdsap384; p=" + strings.Repeat("A", 300), "another=text",
	}
}

func returnsTexts(t *testing.T, s Subject) {
	d := domain(t, "keys.example")
	s.Publish(t, d, records()...)
	expectTexts(t, s, d, records()...)
}

func readsExactlyTheDomain(t *testing.T, s Subject) {
	s.Publish(t, domain(t, "keys.example"), "of the parent")
	s.Publish(t, domain(t, "www.a.keys.example"), "of the child")
	expectNothing(t, s, domain(t, "a.keys.example"))
	s.Publish(t, domain(t, "a.keys.example"), "of the domain")
	expectTexts(t, s, domain(t, "a.keys.example"), "of the domain")
}

func seesChange(t *testing.T, s Subject) {
	d := domain(t, "keys.example")
	s.Publish(t, d, "before")
	expectTexts(t, s, d, "before")
	s.Publish(t, d, "after")
	expectTexts(t, s, d, "after")
}

func findsNothing(t *testing.T, s Subject) {
	expectNothing(t, s, domain(t, "unknown.example"))
	d := domain(t, "empty.example")
	s.Publish(t, d)
	expectNothing(t, s, d)
}

func reportsFailure(t *testing.T, s Subject) {
	d := domain(t, "keys.example")
	s.Publish(t, d, records()...)
	s.Fail(t, d)
	texts, err := s.Source.Texts(t.Context(), d)
	expectUnavailable(t, d, texts, err)
}

func sharesQuery(t *testing.T, s Subject) {
	d := domain(t, "keys.example")
	s.Publish(t, d, records()...)
	release := s.Hold(t, d)
	defer release()
	var waiting, ended sync.WaitGroup
	waiting.Add(parallel)
	for range parallel {
		ended.Go(func() {
			ctx := &signalingContext{Context: t.Context(), waits: sync.OnceFunc(waiting.Done)}
			texts, err := s.Source.Texts(ctx, d)
			if err != nil || !sameTexts(texts, records()) {
				t.Errorf("Texts(%s) = %q, %v, want %q", d, texts, err, records())
			}
		})
	}
	waiting.Wait()
	release()
	ended.Wait()
	if n := s.Questions(t, d); n != 1 {
		t.Errorf("%d callers made %d questions, want 1", parallel, n)
	}
}

func givesOwnTexts(t *testing.T, s Subject) {
	d := domain(t, "keys.example")
	s.Publish(t, d, "one")
	release := s.Hold(t, d)
	defer release()
	var waiting, ended sync.WaitGroup
	waiting.Add(2)
	results := make([][]string, 2)
	for i := range results {
		ended.Go(func() {
			ctx := &signalingContext{Context: t.Context(), waits: sync.OnceFunc(waiting.Done)}
			results[i], _ = s.Source.Texts(ctx, d) // an error shows as a missing text
		})
	}
	waiting.Wait()
	release()
	ended.Wait()
	if len(results[0]) != 1 || len(results[1]) != 1 {
		t.Fatalf("the callers got %q, want one text each", results)
	}
	if results[0][0] = "changed"; results[1][0] != "one" {
		t.Error("a change of one caller's texts changed those of another")
	}
}

func obeysCancel(t *testing.T, s Subject) {
	d := domain(t, "keys.example")
	s.Publish(t, d, records()...)
	release := s.Hold(t, d)
	defer release()
	ctx, cancel := context.WithCancel(t.Context())
	waiting := &signalingContext{Context: ctx, waits: cancel}
	texts, err := s.Source.Texts(waiting, d) // returns although the server does not answer
	expectUnavailable(t, d, texts, err)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Texts(%s) = %v, want an error that wraps %v", d, err, context.Canceled)
	}
	texts, err = s.Source.Texts(ctx, d)
	expectUnavailable(t, d, texts, err)
}

func continuesForOthers(t *testing.T, s Subject) {
	d := domain(t, "keys.example")
	s.Publish(t, d, records()...)
	release := s.Hold(t, d)
	defer release()
	ctx, cancel := context.WithCancel(t.Context())
	waits := make(chan struct{})
	left := make(chan struct{})
	go func() {
		defer close(left)
		// cancelled
		_, _ = s.Source.Texts(&signalingContext{Context: ctx, waits: sync.OnceFunc(func() { close(waits) })}, d)
	}()
	<-waits
	joined := &signalingContext{Context: t.Context(), waits: sync.OnceFunc(func() { cancel(); <-left; release() })}
	texts, err := s.Source.Texts(joined, d)
	if err != nil || !sameTexts(texts, records()) {
		t.Errorf("Texts(%s) = %q, %v, want %q", d, texts, err, records())
	}
	if n := s.Questions(t, d); n != 1 {
		t.Errorf("two callers made %d questions, want 1", n)
	}
}

// signalingContext calls waits when somebody waits for its end, which a source does only after it
// has begun to read or has joined another caller.
type signalingContext struct {
	context.Context
	waits func()
}

// Done implements [context.Context].
func (c *signalingContext) Done() <-chan struct{} {
	c.waits()
	return c.Context.Done()
}

func domain(t *testing.T, name string) publisher.Domain {
	t.Helper()
	d, err := publisher.ParseDomain(name)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func expectTexts(t *testing.T, s Subject, d publisher.Domain, want ...string) {
	t.Helper()
	if texts, err := s.Source.Texts(t.Context(), d); err != nil || !sameTexts(texts, want) {
		t.Errorf("Texts(%s) = %q, %v, want %q", d, texts, err, want)
	}
}

// sameTexts reports whether two lists have the same texts in any order.
func sameTexts(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

func expectNothing(t *testing.T, s Subject, d publisher.Domain) {
	t.Helper()
	texts, err := s.Source.Texts(t.Context(), d)
	if len(texts) != 0 || err != nil && !fault.Is(err, fault.Unauthenticated) {
		t.Errorf("Texts(%s) = %q, %v, want none or a fault of kind Unauthenticated", d, texts, err)
	}
}

// expectUnavailable checks that the error is a failure that may pass, and that its sentence names
// the domain and does not say that there is no record.
func expectUnavailable(t *testing.T, d publisher.Domain, texts []string, err error) {
	t.Helper()
	if len(texts) != 0 || !fault.Is(err, fault.Unavailable) {
		t.Fatalf("Texts(%s) = %q, %v, want a fault of kind Unavailable", d, texts, err)
	}
	f, _ := fault.As(err)
	if !strings.Contains(f.Message, d.String()) || strings.HasSuffix(f.Message, ".") {
		t.Errorf("the message %q does not name %s or has a full stop", f.Message, d)
	}
	for _, claim := range []string{"no record", "has no", "missing", "not found", "not exist"} {
		if strings.Contains(f.Message, claim) {
			t.Errorf("the message %q says %q", f.Message, claim)
		}
	}
}
