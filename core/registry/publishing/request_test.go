package publishing_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/publishing"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/test/must"
)

// ask requests a document as a person.
func (w *fixture) ask(t *testing.T, token, body string) (registry.ReviewID, error) {
	t.Helper()
	return w.Ask(t.Context(), w.callers(token), review.Request{Reason: "For maps.", Source: "https://example.com/a"},
		func(context.Context) ([]byte, error) { return []byte(body), nil })
}

// TestAskWaits checks that a request waits for a reviewer without review, with a rule that approves
// everything, and without a grant.
func TestAskWaits(t *testing.T) {
	t.Parallel()
	for _, reviewed := range []bool{false, true} {
		w := newFixture(t, publishing.Config{Review: reviewed, PendingMax: 50})
		everything, err := registry.ParsePattern("*")
		must.Succeed(t, err)
		must.Succeed(t, w.rules.Add(t.Context(), review.Rule{ID: "all", Pattern: everything}))
		w.runner.twice = true
		id, err := w.ask(t, trustedToken, document("1.0.0"))
		must.Succeed(t, err)
		got, err := w.reviews.Get(t.Context(), id)
		if err != nil || got.State != review.Pending || got.Kind != review.NewServer || got.Submitter.Key != "ada" ||
			got.Request.Reason != "For maps." || got.Request.Source != "https://example.com/a" || !got.IsRequest() {
			t.Errorf("the review is %+v, %v", got, err)
		}
		w.requireActs(t, authority.Act{
			Action: "request", ServerName: serverName, Version: "1.0.0", Note: "For maps.", Review: id,
		})
		name, _ := registry.ParseName(serverName)
		if _, err := w.servers.Latest(t.Context(), name, true); !fault.Is(err, fault.NotFound) {
			t.Errorf("the server is listed: %v", err)
		}
		if _, err := got.Decide(review.Decision{Approve: true, By: "ada"}); !fault.Is(err, fault.Forbidden) {
			t.Errorf("the person decides about the own request: %v", err)
		}
	}
}

func TestAskIsRefused(t *testing.T) {
	t.Parallel()
	reserved, err := registry.ParsePattern("org.reserved/*")
	must.Succeed(t, err)
	for what, c := range map[string]struct {
		token, body string
		want        fault.Kind
	}{
		"no trust":         {untrustedToken, document("1.0.0"), fault.Forbidden},
		"no person":        {"nobody", document("1.0.0"), fault.Unauthenticated},
		"not JSON":         {trustedToken, "<html>", fault.Invalid},
		"a broken rule":    {trustedToken, document("latest"), fault.Invalid},
		"a reserved name":  {trustedToken, `{"name":"org.reserved/a","description":"A","version":"1.0.0"}`, fault.Forbidden},
		"a listed version": {trustedToken, document("0.1.0"), fault.Conflict},
		"a waiting one":    {"stranger", document("0.2.0"), fault.Conflict},
	} {
		w := newFixture(t, publishing.Config{PendingMax: 50, Reserved: []registry.Pattern{reserved}}, registry.ActionPublish)
		w.publishAll(t, "0.1.0")
		if _, err := w.ask(t, trustedToken, document("0.2.0")); err != nil {
			t.Fatal(err)
		}
		w.authority.acts = nil
		if _, err := w.ask(t, c.token, c.body); !fault.Is(err, c.want) {
			t.Errorf("%s: %v", what, err)
		}
		if c.token != "nobody" && (len(w.authority.acts) != 1 || w.authority.acts[0].Reason == "") {
			t.Errorf("%s: the audit log holds %+v", what, w.authority.acts)
		}
	}
	off := newFixture(t, publishing.Config{WritesOff: true, PendingMax: 50})
	if _, err := off.ask(t, trustedToken, document("1.0.0")); !fault.Is(err, fault.Unsupported) {
		t.Errorf("without changes: %v", err)
	}
}

// TestAskDoesNotReadBeforeTrust checks that no one below the trust makes the service read anything,
// and that the error of reading is recorded.
func TestAskDoesNotReadBeforeTrust(t *testing.T) {
	t.Parallel()
	w := newFixture(t, publishing.Config{PendingMax: 50})
	reads := 0
	read := func(context.Context) ([]byte, error) {
		reads++
		return nil, fault.New(fault.Invalid, "it is too large")
	}
	for token, want := range map[string]int{untrustedToken: 0, trustedToken: 1} {
		reads = 0
		if _, err := w.Ask(t.Context(), w.callers(token), review.Request{}, read); err == nil || reads != want {
			t.Errorf("as %s: %v after %d reads", token, err, reads)
		}
	}
	if n := len(w.authority.acts); n != 2 {
		t.Errorf("%d acts", n)
	}
	w.authority.fails = errors.New("the disk is full")
	if _, err := w.Ask(t.Context(), w.callers(trustedToken), review.Request{}, read); fault.Is(err, fault.Invalid) {
		t.Errorf("without a record: %v", err)
	}
}

func TestAskIsBounded(t *testing.T) {
	t.Parallel()
	w := newFixture(t, publishing.Config{PendingMax: 50})
	for i := range review.MaxRequests {
		if _, err := w.ask(t, trustedToken, document(fmt.Sprintf("1.%d.0", i))); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.ask(t, trustedToken, document("2.0.0")); !fault.Is(err, fault.Exhausted) {
		t.Errorf("one more: %v", err)
	}
	if _, err := w.ask(t, "stranger", document("2.0.0")); err != nil {
		t.Errorf("another person: %v", err)
	}
}
