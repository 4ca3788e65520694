package keysources

import (
	"compress/gzip"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/ports/domainkeys/domainkeystest"
	"github.com/tollgate-dev/tollgate/test/dnsserver"
	"github.com/tollgate-dev/tollgate/test/must"
)

const loopback = "127.0.0.1:0"

func TestPagesFulfilTheContract(t *testing.T) {
	t.Parallel()
	domainkeystest.Run(t, func(t *testing.T) domainkeystest.Subject {
		s := startPages(t, loopback, nil)
		return domainkeystest.Subject{
			Source:  s.open(t, patience),
			Publish: s.publish,
			Fail: func(_ *testing.T, d publisher.Domain) {
				s.handle(d.String(), serveStatus(http.StatusInternalServerError))
			},
			Hold:      func(_ *testing.T, d publisher.Domain) func() { return s.hold(d.String()) },
			Questions: func(_ *testing.T, d publisher.Domain) int { return s.countRequests(d.String()) },
		}
	})
}

// expectFault checks that a source returns a fault of the kind whose message contains want.
func expectFault(t *testing.T, source *Pages, domain string, kind fault.Kind, want string) {
	t.Helper()
	texts, err := source.Texts(t.Context(), parseDomain(t, domain))
	f, ok := fault.As(err)
	if !ok || len(texts) != 0 || f.Kind != kind || !strings.Contains(f.Message, want) ||
		!strings.Contains(f.Message, domain) {
		t.Errorf("Texts(%s) = %q, %v, want a fault of kind %v: %s", domain, texts, err, kind, want)
	}
	if ok && strings.Contains(f.Message, "127.0.0") {
		t.Errorf("the message %q shows an address", f.Message)
	}
}

func expectLines(t *testing.T, source *Pages, domain string, want ...string) {
	t.Helper()
	if got, err := source.Texts(t.Context(), parseDomain(t, domain)); err != nil || !slices.Equal(got, want) {
		t.Errorf("Texts(%s) = %q, %v, want %q", domain, got, err, want)
	}
}

func TestPagesOnPort443(t *testing.T) {
	t.Parallel()
	s := startPages(t, "127.44.3.1:443", nil)
	s.handle("keys.example", servePage("one\r\n\r\ntwo"))
	source, err := NewPages(s.config())
	must.Succeed(t, err)
	expectLines(t, source, "keys.example", "one", "two")
}

func TestPagesRequestIsPlain(t *testing.T) {
	t.Parallel()
	s := startPages(t, loopback, nil)
	s.handle("keys.example", func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "%s\n%s\n%q\n%t\n", r.Host, r.UserAgent(), r.Header.Values("Accept-Encoding"), r.Close)
	})
	expectLines(t, s.open(t, patience), "keys.example", "keys.example", "tollgate", "[]", "true")
}

func TestPagesClassifyStatuses(t *testing.T) {
	t.Parallel()
	s := startPages(t, loopback, nil)
	source := s.open(t, patience)
	for status, c := range map[int]struct {
		kind fault.Kind
		want string
	}{
		204: {fault.Unauthenticated, "responds with 204"}, 301: {fault.Unauthenticated, "redirects"},
		302: {fault.Unauthenticated, "redirects"}, 307: {fault.Unauthenticated, "redirects"}, 308: {
			fault.Unauthenticated, "redirects",
		},
		400: {fault.Unauthenticated, "responds with 400"}, 401: {fault.Unauthenticated, "responds with 401"},
		403: {fault.Unauthenticated, "responds with 403"}, 404: {fault.Unauthenticated, "responds with 404"},
		410: {fault.Unauthenticated, "responds with 410"}, 429: {fault.Unavailable, "responds with 429"},
		500: {fault.Unavailable, "responds with 500"}, 502: {fault.Unavailable, "responds with 502"},
		503: {fault.Unavailable, "responds with 503"}, 599: {fault.Unavailable, "responds with 599"},
	} {
		name := fmt.Sprintf("s%d.example", status)
		s.handle(name, serveStatus(status))
		expectFault(t, source, name, c.kind, c.want)
		if n := s.countRequests(name); n != 1 {
			t.Errorf("%d requests to %s, want 1", n, name)
		}
	}
}

func TestPagesLimitTheSize(t *testing.T) {
	t.Parallel()
	s := startPages(t, loopback, nil)
	source := s.open(t, patience)
	largest := strings.Repeat("a", 4096)
	s.handle("largest.example", servePage(largest))
	expectLines(t, source, "largest.example", largest)
	s.handle("large.example", servePage(largest+"a"))
	s.handle("endless.example", func(w http.ResponseWriter, _ *http.Request) {
		for err := error(nil); err == nil; {
			_, err = io.WriteString(w, "v=MCPv1; k=ed25519; p=AAAA\n")
		}
	})
	for _, name := range []string{"large.example", "endless.example"} {
		expectFault(t, source, name, fault.Unauthenticated, "has more than 4096 bytes")
	}
	s.handle("header.example", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X", strings.Repeat("a", 32<<10))
	})
	expectFault(t, source, "header.example", fault.Unavailable, "the connection failed")
}

func TestPagesRefuseCompression(t *testing.T) {
	t.Parallel()
	s := startPages(t, loopback, nil)
	s.handle("keys.example", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		zipped := gzip.NewWriter(w)
		_, _ = io.WriteString(zipped, strings.Repeat("v=MCPv1; k=ed25519; p=AAAA\n", 1<<10)) // the client stops reading
		_ = zipped.Close()                                                                   // likewise
	})
	expectFault(t, s.open(t, patience), "keys.example", fault.Unauthenticated, "is compressed")
}

func TestPagesObeyTheDeadline(t *testing.T) {
	t.Parallel()
	s := startPages(t, loopback, nil)
	source := s.open(t, impatience)
	s.handle("slow.example", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "v=MCPv1; k=ed25519; p=AAAA\n") // the client reports it
		_ = http.NewResponseController(w).Flush()                // likewise
		<-r.Context().Done()
	})
	s.handle("silent.example", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	s.dns.SetFailure("dns.example", dnsserver.Silence)
	for _, name := range []string{"slow.example", "silent.example", "dns.example"} {
		expectFault(t, source, name, fault.Unavailable, "there was no answer in time")
	}
}

func TestPagesVerifyTheCertificate(t *testing.T) {
	t.Parallel()
	s := startPages(t, loopback, nil)
	s.handle("wrongname.example", servePage("a key"))
	s.handle("keys.example", servePage("a key"))
	expectFault(t, s.open(t, patience), "wrongname.example", fault.Unavailable, "no valid certificate")
	c := s.config()
	c.CAFile = ""
	expectFault(t, openPages(t, c, patience, s.port), "keys.example", fault.Unavailable, "no valid certificate")
	if n := s.countRequests("wrongname.example") + s.countRequests("keys.example"); n != 0 {
		t.Errorf("%d requests without a verified certificate", n)
	}

	old := startPages(t, loopback, func(c *tls.Config) {
		c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 // #nosec G402 -- must be refused
	})
	old.handle("keys.example", servePage("a key"))
	expectFault(t, old.open(t, patience), "keys.example", fault.Unavailable, "the connection failed")
}

func TestPagesReportAClosedPort(t *testing.T) {
	t.Parallel()
	dns := dnsserver.Start(t)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", loopback)
	must.Succeed(t, err)
	_, port, _ := net.SplitHostPort(listener.Addr().String()) // the address of a listener has a port
	_ = listener.Close()                                      // its port refuses connections now
	c := Config{Resolver: dns.Address, Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}
	source := openPages(t, c, patience, port)
	dns.SetAddresses("keys.example", netip.MustParseAddr("127.0.0.1"))
	expectFault(t, source, "keys.example", fault.Unavailable, "the connection failed")
	// An address that is refused does not hide that the other one may work later.
	dns.SetAddresses("mixed.example", netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("127.0.0.1"))
	expectFault(t, source, "mixed.example", fault.Unavailable, "the connection failed")
}

func TestPagesRefuseAddressesThatAreNotPublic(t *testing.T) {
	t.Parallel()
	dns := dnsserver.Start(t)
	source := openPages(t, Config{Resolver: dns.Address}, patience, pagePort)
	addresses := []string{
		"127.0.0.1", "10.0.0.1", "172.16.0.1", "192.168.0.1", "169.254.169.254", "100.64.0.1", "224.0.0.1", "0.0.0.0",
		"192.88.99.1", "255.255.255.255",
	}
	if listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp6", "[::1]:0"); err == nil {
		_ = listener.Close() // this machine has IPv6
		addresses = append(addresses, "::1", "fe80::1", "fd00::1", "ff02::1", "2002:7f00:1::1", "64:ff9b::7f00:1",
			"::ffff:127.0.0.1")
	}
	for i, address := range addresses {
		name := fmt.Sprintf("a%d.example", i)
		dns.SetAddresses(name, netip.MustParseAddr(address))
		t.Run(address, func(t *testing.T) {
			t.Parallel()
			expectFault(t, source, name, fault.Unauthenticated, "has an address that is not public")
		})
	}
}

func TestPagesUseTheAddressThatIsAllowed(t *testing.T) {
	t.Parallel()
	s := startPages(t, loopback, nil)
	s.handle("keys.example", servePage("a key"))
	s.dns.SetAddresses("keys.example", netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("10.0.0.1"), s.address)
	expectLines(t, s.open(t, patience), "keys.example", "a key")
}

// TestPagesResolveTheDomainOnce checks that a domain whose address changes between two lookups does
// not make the service connect to an internal server.
func TestPagesResolveTheDomainOnce(t *testing.T) {
	t.Parallel()
	s := startPages(t, loopback, nil)
	internal := startPages(t, net.JoinHostPort("127.0.0.2", s.port), nil)
	s.handle("keys.example", servePage("a key"))
	s.dns.SetAddressSequence("keys.example", []netip.Addr{s.address}, []netip.Addr{internal.address})
	source := s.open(t, patience)
	expectLines(t, source, "keys.example", "a key")
	if n := s.dns.Questions("keys.example", dnsmessage.TypeA); n != 1 {
		t.Errorf("%d lookups, want 1", n)
	}
	expectFault(t, source, "keys.example", fault.Unauthenticated, "has an address that is not public")
	if n := internal.countConnections(); n != 0 {
		t.Errorf("%d connections to the internal server", n)
	}
}

func TestPagesDistinguishNoAddressFromFailures(t *testing.T) {
	t.Parallel()
	s := startPages(t, loopback, nil)
	source := s.open(t, patience)
	s.dns.SetTXT("none.example", "no address")
	for _, name := range []string{"unknown.example", "none.example"} {
		expectFault(t, source, name, fault.Unauthenticated, "has no address")
	}
	for name, failure := range map[string]dnsserver.Failure{
		"servfail.example": dnsserver.ServerFailure, "refused.example": dnsserver.Refused,
		"a.example": dnsserver.MissingA, "aaaa.example": dnsserver.MissingAAAA,
	} {
		s.dns.SetAddresses(name)
		s.dns.SetFailure(name, failure)
		expectFault(t, source, name, fault.Unavailable, "the DNS lookup failed")
	}
	s.handle("keys.example", servePage("a key"))
	s.dns.SetFailure("keys.example", dnsserver.MissingAAAA)
	expectLines(t, source, "keys.example", "a key")
}

func TestPagesNameTheSettingOfABrokenFile(t *testing.T) {
	t.Parallel()
	_, err := NewPages(Config{CAFile: filepath.Join(t.TempDir(), "missing.pem")})
	if err == nil || !strings.HasPrefix(err.Error(), "PUBLISHER_PROOF_CA: ") {
		t.Errorf("NewPages = %v, want an error that begins with the setting", err)
	}
}
