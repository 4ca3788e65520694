package webhook

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/event"
	"github.com/tollgate-dev/tollgate/ports/eventsender"
	"github.com/tollgate-dev/tollgate/ports/eventsender/eventsendertest"
	"github.com/tollgate-dev/tollgate/test/dnsserver"
	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/test/testcert"
)

// patience is a time limit that no test reaches.
const patience = time.Minute

func open(t *testing.T, c config) *Sender {
	t.Helper()
	s := newSender(c)
	t.Cleanup(s.close)
	return s
}

func parseURL(t *testing.T, text string) event.URL {
	t.Helper()
	u, err := event.ParseURL(text)
	must.Succeed(t, err)
	return u
}

// receiver keeps the requests that it gets.
type receiver struct {
	mu       sync.Mutex
	received []eventsendertest.Received
	answer   http.HandlerFunc
}

// ServeHTTP implements [http.Handler].
func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	r.received = append(r.received, eventsendertest.Received{
		Method: q.Method, Path: q.URL.RequestURI(), ContentType: q.Header.Get("Content-Type"),
		Signature: q.Header.Get("X-Tollgate-Signature"), Body: string(body),
	})
	answer := r.answer
	r.mu.Unlock()
	answer(w, q)
}

func (r *receiver) setAnswer(h http.HandlerFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = h
}

func (r *receiver) requests() []eventsendertest.Received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.received)
}

func answerStatus(status int, location, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if location != "" {
			w.Header().Set("Location", location)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body) // the sender may close the connection before
	}
}

// start starts a receiver that answers 204, over TLS if the configuration is not nil.
func start(t *testing.T, c *tls.Config) (*receiver, *httptest.Server) {
	t.Helper()
	r := &receiver{answer: answerStatus(http.StatusNoContent, "", "")}
	s := httptest.NewUnstartedServer(r)
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes that fail on purpose
	if c == nil {
		s.Start()
	} else {
		s.TLS, s.EnableHTTP2 = c, true
		s.StartTLS()
	}
	t.Cleanup(s.Close)
	return r, s
}

func TestSenderFulfilsTheContract(t *testing.T) {
	eventsendertest.Run(t, func(t *testing.T) eventsendertest.Subject {
		r, server := start(t, nil)
		return eventsendertest.Subject{
			Sender: open(t, config{Deadline: patience}), URL: parseURL(t, server.URL+"/hook?key=x"),
			Received: r.requests, Stop: server.Close,
			Answer: func(status int, location, body string) { r.setAnswer(answerStatus(status, location, body)) },
			Hold:   func() { r.setAnswer(func(_ http.ResponseWriter, q *http.Request) { <-q.Context().Done() }) },
		}
	})
}

// TestPurgeNamesItsKeys checks that a purge has its keys in a header, for caches that do not read
// bodies, and that other events do not have it.
func TestPurgeNamesItsKeys(t *testing.T) {
	keys := make(chan []string, 1)
	r, server := start(t, nil)
	r.setAnswer(func(_ http.ResponseWriter, q *http.Request) { keys <- q.Header["Surrogate-Key"] })
	s := open(t, config{Deadline: patience})
	for _, c := range []struct {
		kind event.Type
		body string
		want []string
	}{
		{event.Purge, `{"type":"purge","data":{"keys":["server-1","servers"]}}`, []string{"server-1 servers"}},
		{event.Purge, `{`, []string{""}},
		{event.Status, `{"type":"status","data":{"keys":["server-1","servers"]}}`, nil},
	} {
		request := eventsender.Request{URL: parseURL(t, server.URL), Type: c.kind, Body: []byte(c.body), Signature: "s"}
		if _, err := s.Send(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		if got := <-keys; !slices.Equal(got, c.want) {
			t.Errorf("%s %s has the keys %q, want %q", c.kind, c.body, got, c.want)
		}
	}
}

// expectReason checks that there is no response, for a reason that contains neither an address nor
// the path.
func expectReason(t *testing.T, s *Sender, url, want string) {
	t.Helper()
	status, err := s.Send(t.Context(), eventsender.Request{URL: parseURL(t, url), Body: []byte("{}"), Signature: "s"})
	if f, ok := fault.As(err); !ok || status != 0 || f.Kind != fault.Unavailable || f.Message != want {
		t.Errorf("Send to %s = %d, %v, want a fault: %s", url, status, err, want)
	}
}

// secure is a receiver over TLS with a name, and the settings to reach it.
type secure struct {
	*receiver
	dns    *dnsserver.Server
	config config
	url    string // without a path
}

// startSecure starts a receiver with a certificate for a host. Its DNS server knows hook.example.
func startSecure(t *testing.T, host string) secure {
	t.Helper()
	authority, dns := testcert.NewAuthority(t), dnsserver.Start(t)
	r, server := start(t, &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{authority.Issue(t, host).Pair()},
	})
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	must.Succeed(t, err)
	loopback := netip.MustParseAddr("127.0.0.1")
	dns.SetAddresses("hook.example", loopback)
	return secure{r, dns, config{
		Config:   Config{Networks: []netip.Prefix{netip.PrefixFrom(loopback, 32)}},
		Deadline: patience, Resolver: resolverOf(dns),
		TLS: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authority.Pool()},
	}, "https://hook.example:" + port}
}

func resolverOf(dns *dnsserver.Server) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, dns.Address)
	}}
}

func TestSenderVerifiesTLS(t *testing.T) {
	t.Parallel()
	s := startSecure(t, "hook.example")
	protocol := ""
	s.setAnswer(func(w http.ResponseWriter, q *http.Request) {
		protocol = q.Proto + " " + q.UserAgent()
		w.WriteHeader(http.StatusNoContent)
	})
	if status, err := open(t, s.config).Send(t.Context(), eventsender.Request{
		URL: parseURL(t, s.url+"/"), Body: []byte("{}"),
	}); status != 204 || err != nil || protocol != "HTTP/2.0 tollgate" {
		t.Errorf("Send = %d, %v, with %s", status, err, protocol)
	}
	unknown := s.config
	unknown.TLS = nil
	expectReason(t, open(t, unknown), s.url+"/hook", "the receiver has no valid certificate")
	other := startSecure(t, "other.example")
	expectReason(t, open(t, other.config), other.url+"/hook", "the receiver has no valid certificate")
	if n := len(other.requests()); n != 0 {
		t.Errorf("%d requests arrived without a valid certificate", n)
	}
}

func TestSenderRefusesNamesWithPrivateAddresses(t *testing.T) {
	t.Parallel()
	s := startSecure(t, "hook.example")
	s.config.Networks = nil
	sender := open(t, s.config)
	expectReason(t, sender, s.url+"/hook",
		"the host has an address that is not public, to which the service does not connect")
	expectReason(t, sender, "https://gone.example/hook", "the DNS lookup failed")
	if n := len(s.requests()); n != 0 {
		t.Errorf("%d requests arrived at a private address", n)
	}
}

func TestLoopbackURLReachesLoopbackOnly(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"127.0.0.1:80": true, "127.9.9.9:80": true, "[::1]:80": true, "[::ffff:127.0.0.1]:80": true,
		"10.0.0.1:80": false, "1.1.1.1:80": false, "[2606:4700::1111]:80": false, "0.0.0.0:80": false,
		"/run/socket": false,
	} {
		if err := requireLoopback("tcp", address, nil); (err == nil) != want {
			t.Errorf("requireLoopback(%s) = %v, want %t", address, err, want)
		}
	}
}

func TestSenderFollowsNoRedirectToLoopback(t *testing.T) {
	t.Parallel()
	inner, server := start(t, nil)
	s := startSecure(t, "hook.example")
	s.setAnswer(answerStatus(http.StatusTemporaryRedirect, server.URL+"/inner", ""))
	if status, err := open(t, s.config).Send(t.Context(), eventsender.Request{
		URL: parseURL(t, s.url), Body: []byte("{}"),
	}); status != 307 || err != nil {
		t.Errorf("Send = %d, %v, want 307", status, err)
	}
	if n := len(inner.requests()); n != 0 {
		t.Errorf("%d requests were redirected to loopback", n)
	}
}

func TestSenderBoundsTimeAndSize(t *testing.T) {
	t.Parallel()
	r, server := start(t, nil)
	url := server.URL + "/hook"
	endless := func(w http.ResponseWriter, q *http.Request) { // it ends when the sender does
		piece := make([]byte, 32<<10)
		for q.Context().Err() == nil {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	}
	r.setAnswer(endless)
	if status, err := open(t, config{Deadline: patience}).Send(t.Context(), eventsender.Request{
		URL: parseURL(t, url),
	}); status != 200 || err != nil {
		t.Errorf("with an endless body, Send = %d, %v", status, err)
	}
	hurried := open(t, config{Deadline: 200 * time.Millisecond})
	r.setAnswer(func(w http.ResponseWriter, q *http.Request) {
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush() //nolint:forcetypeassert // as all writers of net/http
		<-q.Context().Done()
	})
	if status, err := hurried.Send(t.Context(), eventsender.Request{
		URL: parseURL(t, url),
	}); status != 200 || err != nil {
		t.Errorf("with a body that does not end, Send = %d, %v", status, err)
	}
	r.setAnswer(func(_ http.ResponseWriter, q *http.Request) { <-q.Context().Done() })
	expectReason(t, hurried, url, "there was no response in time")
	r.setAnswer(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 1<<20)) })
	expectReason(t, open(t, config{Deadline: patience}), url, "the receiver sent no valid response")
	r.setAnswer(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	expectReason(t, open(t, config{Deadline: patience}), url, "the connection ended without a response")
}

func TestReceiverWithoutTLS(t *testing.T) {
	t.Parallel()
	_, server := start(t, nil)
	s := startSecure(t, "hook.example")
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String()) // the address of a listener has a port
	expectReason(t, open(t, s.config), "https://hook.example:"+port+"/", "the receiver does not use TLS")
	server.Close()
	expectReason(t, open(t, s.config), "https://hook.example:"+port+"/", "the connection failed")
}
