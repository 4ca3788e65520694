package clientdocs

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/secrets/secretstest"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/must"
)

func TestClient(t *testing.T) {
	s := startSite(t)
	r := s.reader(loopback)
	for path, media := range map[string]string{
		"/a": "application/json", "/b": "application/json; charset=utf-8", "/c": "Application/Client+JSON",
	} {
		s.handle(path, serve(document(t, s.id(path), nil), "Content-Type", media))
		got, err := r.Client(t.Context(), s.id(path))
		want := oauth.Client{
			ID: s.id(path), Name: "Example", RedirectURIs: []string{"http://127.0.0.1/callback"}, Method: oauth.MethodNone,
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v; want %+v", media, got, err, want)
		}
		got.RedirectURIs[0] = "https://evil.example.com/"
		if again, err := r.Client(t.Context(), s.id(path)); err != nil || !reflect.DeepEqual(again, want) {
			t.Errorf("after the result was changed: %+v, %v", again, err)
		}
	}
	if s.last.Get("Accept-Encoding") != "identity" || s.last.Get("Cookie") != "" || s.last.Get("User-Agent") != "tollgate" {
		t.Errorf("the request has the header %v", s.last)
	}
}

// TestPrivateAddresses checks that neither an address nor a name leads into the internal network, except to
// the networks of the settings.
func TestPrivateAddresses(t *testing.T) {
	s := startSite(t)
	s.handle("/", func(http.ResponseWriter, *http.Request) { t.Error("the internal network was read") })
	s.dns.SetAddresses("mapped.example.com", netip.MustParseAddr("::ffff:127.0.0.1"))
	s.dns.SetAddresses("metadata.example.com", netip.MustParseAddr("169.254.169.254"))
	for _, networks := range [][]string{nil, {"10.0.0.0/8", "::1/128"}} {
		r := s.reader(networks...)
		for _, host := range []string{
			"127.0.0.1", "client.example.com", "mapped.example.com", "metadata.example.com", "::ffff:127.0.0.1", "0.0.0.0", "10.255.255.1",
			"2130706433", "0x7f.1", "127.0.0.1.",
		} {
			if host == "10.255.255.1" && networks != nil {
				continue // it is allowed
			}
			_, err := r.Client(t.Context(), oauth.ClientID(s.url(host, "/")))
			if !fault.Is(err, fault.Invalid) || strings.Contains(fault.PublicMessage(err), "127.0") {
				t.Errorf("%s: %v", host, err)
			}
			_, err = r.Verify(t.Context(), &oauth.Client{JWKSURI: s.url(host, "/")}, newKey(t).Sign(t, claims()))
			wantRefused(t, "keys at "+host, err, fault.Unavailable, "cannot be read")
		}
	}
	_, err := s.reader().Client(t.Context(), oauth.ClientID(s.url("client.example.com", "/")))
	wantRefused(t, "a name", err, fault.Invalid, "no public address")
}

// TestRefusedResponses checks what a server may not send, and that no refusal is kept.
func TestRefusedResponses(t *testing.T) {
	s := startSite(t)
	good := func(id oauth.ClientID) []byte { return document(t, id, nil) }
	var bomb bytes.Buffer
	zip := gzip.NewWriter(&bomb)
	_, err := zip.Write(append(good(s.id("/bomb")), bytes.Repeat([]byte(" "), 1<<20)...))
	must.Succeed(t, errors.Join(err, zip.Close()))
	redirect := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, s.url("client.example.com", "/good"), status)
		}
	}
	s.handle("/good", serve(good(s.id("/good"))))
	n := 0
	for name, c := range map[string]struct {
		handler func(id oauth.ClientID) http.HandlerFunc
		reason  string
	}{
		"a redirect":           {func(oauth.ClientID) http.HandlerFunc { return redirect(302) }, "302"},
		"a permanent redirect": {func(oauth.ClientID) http.HandlerFunc { return redirect(308) }, "308"},
		"not found": {func(id oauth.ClientID) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(404)
				_, _ = w.Write(good(id))
			}
		}, "404"},
		"another success": {func(id oauth.ClientID) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(203)
				_, _ = w.Write(good(id))
			}
		}, "203"},
		"HTML": {func(id oauth.ClientID) http.HandlerFunc {
			return serve([]byte("<!doctype html>"), "Content-Type", "text/html")
		}, "JSON"},
		"JSON as text": {func(id oauth.ClientID) http.HandlerFunc {
			return serve(good(id), "Content-Type", "text/plain")
		}, "JSON"},
		"no type": {func(id oauth.ClientID) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) {
				w.Header()["Content-Type"] = nil
				_, _ = w.Write(good(id))
			}
		}, "JSON"},
		"6 KiB": {func(id oauth.ClientID) http.HandlerFunc {
			return serve(append(good(id), bytes.Repeat([]byte(" "), 6<<10)...))
		}, "5120"},
		"gzip": {func(oauth.ClientID) http.HandlerFunc {
			return serve(bomb.Bytes(), "Content-Encoding", "gzip")
		}, "compressed"},
		"a secret": {func(id oauth.ClientID) http.HandlerFunc {
			return serve(document(t, id, map[string]any{"client_secret": "x"}))
		}, "secret"},
		"another id": {func(oauth.ClientID) http.HandlerFunc { return serve(good("https://client.example.com/")) }, "client_id"},
		"not JSON":   {func(oauth.ClientID) http.HandlerFunc { return serve([]byte("{")) }, "JSON"},
		"a connection that ends": {func(id oauth.ClientID) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) {
				serve(good(id)[:10], "Content-Length", "200")(w, nil)
				panic(http.ErrAbortHandler)
			}
		}, "connection"},
		"a long header": {func(id oauth.ClientID) http.HandlerFunc {
			return serve(good(id), "X-Long", strings.Repeat("x", 32<<10))
		}, "connection"},
	} {
		r := s.reader(loopback)
		n++
		id := s.id(fmt.Sprintf("/%d", n))
		s.handle(fmt.Sprintf("/%d", n), c.handler(id))
		_, err := r.Client(t.Context(), id)
		wantRefused(t, name, err, fault.Invalid, c.reason)
		s.handle(fmt.Sprintf("/%d", n), serve(good(id)))
		if _, err := r.Client(t.Context(), id); err != nil {
			t.Errorf("%s: a good document after that: %v", name, err)
		}
	}
	if s.requests("client.example.com/good") != 0 {
		t.Error("a redirect was followed")
	}
	r := s.reader(loopback)
	_, err = r.Client(t.Context(), oauth.ClientID(s.url("wrong.example.com", "/good")))
	wantRefused(t, "a wrong certificate", err, fault.Invalid, "certificate")
	_, err = r.Client(t.Context(), oauth.ClientID(s.url("missing.example.com", "/good")))
	wantRefused(t, "no such host", err, fault.Invalid, "connection")
	for _, id := range []string{
		"http://client.example.com/good", "https://client.example.com", "https://client.example.com/good?a=b", "registered",
		"https://client.example.com/good#a", "https://a@client.example.com/good", "https://client.example.com/a/../good",
	} {
		_, err := r.Client(t.Context(), oauth.ClientID(id))
		wantRefused(t, id, err, fault.Invalid, "id of the client")
	}
}

// TestLargestDocument checks that a document may have 5 KiB.
func TestLargestDocument(t *testing.T) {
	s := startSite(t)
	text := document(t, s.id("/a"), nil)
	for size, good := range map[int]bool{oauth.MaxDocument: true, oauth.MaxDocument + 1: false} {
		s.handle("/a", serve(append(bytes.Clone(text), bytes.Repeat([]byte(" "), size-len(text))...)))
		if _, err := s.reader(loopback).Client(t.Context(), s.id("/a")); (err == nil) != good {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

// TestSlowBody checks that a server that sends a byte at a time is given up.
func TestSlowBody(t *testing.T) {
	s := startSite(t)
	text := document(t, s.id("/a"), nil)
	s.handle("/a", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := range text {
			_, _ = w.Write(text[i : i+1])
			if w.(http.Flusher).Flush(); i > 2 {
				<-r.Context().Done()
				panic(http.ErrAbortHandler) // to return would end the body as a whole one ends
			}
		}
	})
	r := s.reader(loopback)
	r.documents.flight.Deadline = 200 * time.Millisecond
	_, err := r.Client(t.Context(), s.id("/a"))
	wantRefused(t, "a slow body", err, fault.Invalid, "in time")
	if deadline != 5*time.Second {
		t.Errorf("the deadline is %v", deadline)
	}
}

// TestHowLongCopiesAreKept checks that a copy is kept as the headers say, within 1 minute and 24 hours, and
// that a document that changes to a bad one is refused then.
func TestHowLongCopiesAreKept(t *testing.T) {
	for header, want := range map[string]time.Duration{
		"": time.Minute, "no-store": time.Minute, "max-age=0": time.Minute, "max-age=59, public": time.Minute,
		"public, max-age=600": 10 * time.Minute, "max-age=86400": 24 * time.Hour, "max-age=999999999": 24 * time.Hour,
		"max-age=x": time.Minute, "max-age=-1": time.Minute,
	} {
		s := startSite(t)
		r := s.reader(loopback)
		s.handle("/a", serve(document(t, s.id("/a"), nil), "Cache-Control", header))
		if _, err := r.Client(t.Context(), s.id("/a")); err != nil {
			t.Fatal(err)
		}
		s.handle("/a", serve(document(t, s.id("/b"), nil)))
		s.clock.Advance(want - time.Second)
		if _, err := r.Client(t.Context(), s.id("/a")); err != nil || s.requests("client.example.com/a") != 1 {
			t.Errorf("%q: after %v: %v", header, want-time.Second, err)
		}
		s.clock.Advance(time.Second)
		_, err := r.Client(t.Context(), s.id("/a"))
		wantRefused(t, header, err, fault.Invalid, "client_id")
		if s.requests("client.example.com/a") != 2 {
			t.Errorf("%q: it was read %d times", header, s.requests("client.example.com/a"))
		}
	}
}

// TestFetchesOfAHost checks that a host is asked 10 times within any minute, whatever the port, the path and
// the spelling, and that others are not hindered.
func TestFetchesOfAHost(t *testing.T) {
	s := startSite(t)
	r := s.reader(loopback)
	ask := func(host string) error {
		t.Helper()
		_, err := r.Client(t.Context(), oauth.ClientID(s.url(host, fmt.Sprintf("/%d", s.clock.Now().UnixNano()))))
		return err
	}
	for n := range perMinute {
		host := []string{"client.example.com", "CLIENT.example.com", "client.example.com."}[n%3]
		if err := ask(host); !fault.Is(err, fault.Invalid) {
			t.Fatalf("fetch %d: %v", n+1, err)
		}
		s.clock.Advance(time.Second)
	}
	_, err := r.Client(t.Context(), "https://client.example.com:1/x")
	f, _ := fault.As(err)
	if !fault.Is(err, fault.Exhausted) || f.RetryAfter != 50*time.Second {
		t.Errorf("fetch 11: %v after %v, want fault.Exhausted after 50 s", err, f.RetryAfter)
	}
	if _, err := r.Verify(t.Context(), &oauth.Client{JWKSURI: s.url("client.example.com", "/keys")}, newKey(t).Sign(t, claims())); err == nil {
		t.Error("keys of the host are read")
	} else if f, _ := fault.As(err); f.Kind != fault.Unavailable || f.RetryAfter != 50*time.Second {
		t.Errorf("keys of the host: %v after %v", err, f.RetryAfter)
	}
	if err := ask("other.example.com"); !fault.Is(err, fault.Invalid) {
		t.Errorf("another host: %v", err)
	}
	s.clock.Advance(49 * time.Second)
	if err := ask("client.example.com"); !fault.Is(err, fault.Exhausted) {
		t.Errorf("after 49 s: %v", err)
	}
	s.clock.Advance(time.Second)
	if err := ask("client.example.com"); !fault.Is(err, fault.Invalid) {
		t.Errorf("after 50 s: %v", err)
	}
	if err := ask("client.example.com"); !fault.Is(err, fault.Exhausted) {
		t.Errorf("once more: %v", err)
	}
}

// TestKnownDocumentsOutliveTheLimit: who asks a host for what is not there locks out no client that was there.
func TestKnownDocumentsOutliveTheLimit(t *testing.T) {
	s := startSite(t)
	r := s.reader(loopback)
	s.handle("/a", serve(document(t, s.id("/a"), nil)))
	read := func(path string) error {
		_, err := r.Client(t.Context(), s.id(path))
		return err
	}
	must.Succeed(t, read("/a"))
	s.clock.Advance(2 * time.Minute) // the copy is too old
	for n := range perMinute {
		if err := read(fmt.Sprintf("/none%d", n)); !fault.Is(err, fault.Invalid) {
			t.Fatalf("fetch %d: %v", n+1, err)
		}
	}
	must.Succeed(t, read("/a"))
	if err := read("/b"); !fault.Is(err, fault.Exhausted) {
		t.Errorf("another one: %v", err)
	}
	s.clock.Advance(mostLife)
	for n := range perMinute {
		_ = read(fmt.Sprintf("/none%d", n)) // as above
	}
	if err := read("/a"); !fault.Is(err, fault.Exhausted) {
		t.Errorf("after a day: %v", err)
	}
}

// TestManyCallers checks that callers at the same time cause one fetch, and that each of them waits no
// longer than it wants.
func TestManyCallers(t *testing.T) {
	s := startSite(t)
	r := s.reader(loopback)
	arrived, released := make(chan struct{}, 1), make(chan struct{})
	s.handle("/a", func(w http.ResponseWriter, req *http.Request) {
		arrived <- struct{}{}
		<-released
		serve(document(t, s.id("/a"), nil))(w, req)
	})
	var wait sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	impatient := make(chan error, 1)
	wait.Go(func() { // it begins the fetch, and does not end it
		_, err := r.Client(ctx, s.id("/a"))
		impatient <- err
	})
	await.Receive(t, "the request", arrived)
	for range 50 {
		wait.Go(func() {
			if _, err := r.Client(t.Context(), s.id("/a")); err != nil {
				t.Error(err)
			}
		})
	}
	cancel()
	wantRefused(t, "a caller that has gone", await.Receive(t, "the caller that has gone", impatient), fault.Unavailable, "wait")
	close(released)
	wait.Wait()
	if n := s.requests("client.example.com/a"); n != 1 {
		t.Errorf("there were %d requests", n)
	}
}

// TestCopiesAreBounded checks that many documents do not take more memory than the bounds say.
func TestCopiesAreBounded(t *testing.T) {
	s := startSite(t)
	r := s.reader(loopback)
	r.documents.bounds.Size = 3 * (copySize + oauth.MaxDocument)
	for n := range 7 {
		path := fmt.Sprintf("/%d", n)
		text := document(t, s.id(path), nil)
		text = append(text, bytes.Repeat([]byte(" "), oauth.MaxDocument-len(text))...)
		s.handle(path, serve(text, "Cache-Control", "max-age=86400"))
		if _, err := r.Client(t.Context(), s.id(path)); err != nil {
			t.Fatal(err)
		}
	}
	for path, requests := range map[string]int{"/0": 2, "/6": 1} {
		if _, err := r.Client(t.Context(), s.id(path)); err != nil || s.requests("client.example.com"+path) != requests {
			t.Errorf("%s was read %d times, want %d, error %v", path, s.requests("client.example.com"+path), requests, err)
		}
	}
	if r := New(Config{}, s.clock).(*Reader); r.documents.bounds.Size != maxKept || r.keys.bounds.Size != maxKept {
		t.Errorf("the bounds are %v and %v", r.documents.bounds, r.keys.bounds)
	}
}

func TestConfig(t *testing.T) {
	if err := (Config{Networks: []netip.Prefix{{}}}).Validate(); err == nil || !strings.Contains(err.Error(), "OAUTH_CLIENT_NETWORKS") {
		t.Errorf("a malformed network: %v", err)
	}
	must.Succeed(t, Config{Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}.Validate())
	_, err := New(Config{}, secretstest.NewClock()).Client(t.Context(), "https://127.0.0.1:1/x")
	wantRefused(t, "the real reader", err, fault.Invalid, "no public address")
}
