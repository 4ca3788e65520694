// Package eventsendertest has the contract tests of ports/eventsender. Every adapter runs them,
// with a real receiver.
package eventsendertest

import (
	"context"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/event"
	"github.com/tollgate-dev/tollgate/ports/eventsender"
)

// Received is a request that a receiver got.
type Received struct{ Method, Path, ContentType, Signature, Body string }

// Subject is a sender under test with a receiver, whose URL is one of loopback.
type Subject struct {
	Sender eventsender.Sender
	URL    event.URL
	// Answer makes the receiver answer with a status, a header Location and a body.
	Answer func(status int, location, body string)
	// Hold makes the receiver answer only after the test.
	Hold func()
	// Stop ends the receiver.
	Stop func()
	// Received returns the requests that the receiver got.
	Received func() []Received
}

// Run runs the suite. open returns a fresh subject, which answers with the status 204, and
// registers its own cleanup.
func Run(t *testing.T, open func(t *testing.T) Subject) {
	t.Helper()
	t.Run("a request has the body and its signature", func(t *testing.T) { postsSignedBody(t, open(t)) })
	t.Run("every status is returned and no redirect is followed", func(t *testing.T) { returnsStatus(t, open(t)) })
	t.Run("a receiver that cannot be reached is reported as unavailable", func(t *testing.T) {
		reportsUnreachable(t, open(t))
	})
	t.Run("a call ends when its context is cancelled", func(t *testing.T) { endsWithContext(t, open(t)) })
	t.Run("a receiver with a private address is refused", func(t *testing.T) { refusesPrivate(t, open(t)) })
}

func request(u event.URL) eventsender.Request {
	return eventsender.Request{URL: u, Body: []byte(`{"id":"e"}`), Signature: "t=1,v1=ab"}
}

func expectStatus(t *testing.T, s Subject, want int) {
	t.Helper()
	if status, err := s.Sender.Send(t.Context(), request(s.URL)); status != want || err != nil {
		t.Errorf("Send = %d, %v, want %d", status, err, want)
	}
}

func postsSignedBody(t *testing.T, s Subject) {
	expectStatus(t, s, 204)
	got := s.Received()
	path := "/" + strings.SplitN(s.URL.String(), "/", 4)[3]
	if want := (Received{
		"POST", path, "application/json", "t=1,v1=ab", `{"id":"e"}`,
	}); len(got) != 1 || got[0] != want {
		t.Errorf("received %+v, want %+v", got, want)
	}
}

func returnsStatus(t *testing.T, s Subject) {
	for _, status := range []int{200, 202, 204, 301, 302, 307, 308, 400, 410, 429, 500, 503} {
		s.Answer(status, s.URL.String()+"/elsewhere", "")
		expectStatus(t, s, status)
	}
	for _, r := range s.Received() {
		if strings.HasSuffix(r.Path, "/elsewhere") {
			t.Error("a redirect was followed")
		}
	}
	s.Answer(200, "", strings.Repeat("x", 10<<20))
	expectStatus(t, s, 200)
	s.Answer(204, "", "")
	expectStatus(t, s, 204)
}

func expectUnavailable(t *testing.T, err error) {
	t.Helper()
	if f, ok := fault.As(err); !ok || f.Kind != fault.Unavailable || f.Message == "" {
		t.Errorf("Send = %v, want a fault of kind %v with a clause", err, fault.Unavailable)
	}
}

func reportsUnreachable(t *testing.T, s Subject) {
	s.Stop()
	_, err := s.Sender.Send(t.Context(), request(s.URL))
	expectUnavailable(t, err)
	if err != nil && strings.Contains(err.Error(), "/hook") {
		t.Errorf("the error %q shows the path", err)
	}
}

func endsWithContext(t *testing.T, s Subject) {
	s.Hold()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Sender.Send(ctx, request(s.URL))
	expectUnavailable(t, err)
}

func refusesPrivate(t *testing.T, s Subject) {
	for _, host := range []string{
		"10.0.0.1", "192.168.1.1:8443", "169.254.169.254", "[fd00::1]", "[::ffff:10.0.0.1]:8443", "0.0.0.0", "[::]",
		"100.64.0.1",
	} {
		u, err := event.ParseURL("https://" + host + "/hook")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Sender.Check(t.Context(), u); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "url") {
			t.Errorf("Check(%s) = %v, want an error that names url", host, err)
		}
		_, err = s.Sender.Send(t.Context(), request(u))
		expectUnavailable(t, err)
	}
	for _, text := range []string{
		"https://example.com/hook", "https://1.1.1.1/hook", "https://[2606:4700::1111]/hook", "http://127.0.0.1:9/hook",
		"https://localhost/hook", "http://[::1]/hook",
	} {
		u, err := event.ParseURL(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Sender.Check(t.Context(), u); err != nil {
			t.Errorf("Check(%s) = %v", text, err)
		}
	}
}
