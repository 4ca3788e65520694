package clientdocs

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/plugins/sdk/publicdial"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/secrets/secretstest"
	"github.com/tollgate-dev/tollgate/test/dnsserver"
	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/test/testcert"
)

// site is a web server over TLS at 127.0.0.1, which is all hosts of example.com that its DNS server knows.
type site struct {
	dns       *dnsserver.Server
	authority *testcert.Certificate
	port      string
	clock     *clocktest.Manual

	mu       sync.Mutex
	handlers map[string]http.HandlerFunc // by path
	asked    map[string]int              // by host and path
	last     http.Header                 // of the last request
}

func startSite(t *testing.T) *site {
	t.Helper()
	s := &site{
		dns: dnsserver.Start(t), authority: testcert.NewAuthority(t), clock: secretstest.NewClock(),
		handlers: map[string]http.HandlerFunc{}, asked: map[string]int{},
	}
	server := httptest.NewUnstartedServer(s)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes that fail on purpose
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		pair := s.authority.Issue(t, strings.Replace(hello.ServerName, "wrong.", "right.", 1)).Pair()
		return &pair, nil
	}}
	server.StartTLS()
	t.Cleanup(server.Close)
	_, s.port, _ = net.SplitHostPort(server.Listener.Addr().String()) // the address of a listener has a port
	for _, host := range []string{"client.example.com", "other.example.com", "wrong.example.com"} {
		s.dns.SetAddresses(host, netip.MustParseAddr("127.0.0.1"))
	}
	return s
}

// ServeHTTP implements [http.Handler].
func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	host, _, _ := strings.Cut(r.Host, ":")
	s.mu.Lock()
	s.asked[host+r.URL.Path]++
	s.last = r.Header
	handler := s.handlers[r.URL.Path]
	s.mu.Unlock()
	if handler == nil || r.Method != http.MethodGet {
		http.NotFound(w, r)
		return
	}
	handler(w, r)
}

// handle sets the handler of a path of all hosts.
func (s *site) handle(path string, handler http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handlers[path] = handler
}

// requests returns how often a path of a host was read.
func (s *site) requests(hostAndPath string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[hostAndPath]
}

// url returns the address of a path of a host.
func (s *site) url(host, path string) string {
	return "https://" + net.JoinHostPort(host, s.port) + path
}

// id returns the id of the client whose document is at a path.
func (s *site) id(path string) oauth.ClientID {
	return oauth.ClientID(s.url("client.example.com", path))
}

// reader returns a reader that trusts the authority of the site and may connect to networks.
func (s *site) reader(networks ...string) *Reader {
	dial := publicdial.Config{Timeout: deadline, Resolver: &net.Resolver{
		PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, s.dns.Address)
		},
	}}
	for _, network := range networks {
		dial.Allowed = append(dial.Allowed, netip.MustParsePrefix(network))
	}
	return newReader(fetcherBy(dial, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: s.authority.Pool()}, s.clock))
}

const loopback = "127.0.0.0/8"

// document returns a good document of a client.
func document(t *testing.T, id oauth.ClientID, changes map[string]any) []byte {
	t.Helper()
	members := map[string]any{
		"client_id": id, "client_name": "Example", "redirect_uris": []string{"http://127.0.0.1/callback"},
	}
	for name, value := range changes {
		members[name] = value
	}
	text, err := json.Marshal(members)
	must.Succeed(t, err)
	return text
}

// serve sends a text of JSON with headers.
func serve(text []byte, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		_, _ = w.Write(text) // the client may have gone
	}
}

// wantRefused fails the test unless an error is of a kind and its message has a text.
func wantRefused(t *testing.T, what string, err error, kind fault.Kind, text string) {
	t.Helper()
	if !fault.Is(err, kind) || !strings.Contains(fault.PublicMessage(err), text) {
		t.Errorf("%s: %v, want %v with %q", what, err, kind, text)
	}
}
