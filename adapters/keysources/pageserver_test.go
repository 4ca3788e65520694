package keysources

import (
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/test/dnsserver"
	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/test/testcert"
)

// pageServer serves the pages of all domains over TLS at 127.0.0.1. Its DNS server knows the
// domains for which a handler is set.
type pageServer struct {
	dns       *dnsserver.Server
	authority *testcert.Certificate
	address   netip.Addr
	port      string

	mu          sync.Mutex
	handlers    map[string]http.HandlerFunc
	requests    map[string]int
	connections int
}

// startPages runs a server at the address, which has a free port if its port is 0.
func startPages(t *testing.T, address string, change func(*tls.Config)) *pageServer {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Skipf("this user may not listen at %s: %v", address, err)
	}
	at := netip.MustParseAddrPort(listener.Addr().String())
	_, port, _ := net.SplitHostPort(listener.Addr().String()) // the address of a listener has a port
	s := &pageServer{
		dns: dnsserver.Start(t), authority: testcert.NewAuthority(t), address: at.Addr(), port: port,
		handlers: map[string]http.HandlerFunc{}, requests: map[string]int{},
	}
	server := httptest.NewUnstartedServer(s)
	_ = server.Listener.Close() // it is replaced
	server.Listener = listener
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes that fail on purpose
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.mu.Lock()
			s.connections++
			s.mu.Unlock()
		}
	}
	var certificates sync.Map
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12,
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			found, _ := certificates.LoadOrStore(hello.ServerName, sync.OnceValue(func() tls.Certificate {
				return s.authority.Issue(t, strings.Replace(hello.ServerName, "wrongname", "othername", 1)).Pair()
			}))
			issue, _ := found.(func() tls.Certificate) // its only type
			pair := issue()
			return &pair, nil
		}}
	if change != nil {
		change(server.TLS)
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	return s
}

// ServeHTTP implements [http.Handler].
func (s *pageServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	host, _, _ := strings.Cut(r.Host, ":")
	s.mu.Lock()
	s.requests[host]++
	handler := s.handlers[host]
	s.mu.Unlock()
	if r.Method != http.MethodGet || r.URL.Path != "/.well-known/mcp-registry-auth" || r.URL.RawQuery != "" ||
		handler == nil {
		http.NotFound(w, r)
		return
	}
	handler(w, r)
}

// handle makes the domain exist, with the handler of its page.
func (s *pageServer) handle(host string, handler http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handlers[host] = handler
	s.dns.SetAddresses(host, s.address)
}

func (s *pageServer) countRequests(host string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[host]
}

func (s *pageServer) countConnections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.connections
}

// config returns settings with which the pages of this server can be read.
func (s *pageServer) config() Config {
	return Config{
		Resolver: s.dns.Address, CAFile: s.authority.CertFile,
		Networks: []netip.Prefix{netip.PrefixFrom(s.address, s.address.BitLen())},
	}
}

// open returns a source for this server.
func (s *pageServer) open(t *testing.T, deadline time.Duration) *Pages {
	t.Helper()
	return openPages(t, s.config(), deadline, s.port)
}

func openPages(t *testing.T, c Config, deadline time.Duration, port string) *Pages {
	t.Helper()
	source, err := pagesWithin(c, deadline, port)
	must.Succeed(t, err)
	return source
}

// hold makes the requests for a domain wait until release is called.
func (s *pageServer) hold(host string) (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	held, inner := make(chan struct{}), s.handlers[host]
	s.handlers[host] = func(w http.ResponseWriter, r *http.Request) {
		<-held
		inner(w, r)
	}
	return sync.OnceFunc(func() { close(held) })
}

// servePage returns a handler that serves the body.
func servePage(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) } // the client reports it
}

// serveStatus returns a handler that responds with the status and a body that contains a record.
func serveStatus(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "/other")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "v=MCPv1; k=ed25519; p=AAAA\n") // some statuses have no body
	}
}

// publish sets the lines of the page of a domain.
func (s *pageServer) publish(_ *testing.T, d publisher.Domain, texts ...string) {
	s.handle(d.String(), servePage(strings.Join(texts, "\n")+"\n"))
}
