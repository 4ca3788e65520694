package publisher

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"crypto/tls"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/test/testcert"
)

// TestProofByDNS publishes with the publishing client and a key in TXT records.
func TestProofByDNS(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.WantAuditEvents(t)
		t.Parallel()
		p := startProofs(t, e)
		for _, key := range []*domainKey{newEd25519Key(t), newP384Key(t)} {
			domain, space := key.algorithm+".example", "example."+key.algorithm
			policy := p.allowDomain(t, domain, key, "--pattern", space+"/*", "--action", "publish",
				"--action", "status")
			c := newProofClient(t)
			c.run(t, "login", "dns", "--domain", strings.ToUpper(domain), "--algorithm", key.algorithm, "--private-key",
				key.private, "--registry", p.API)
			claims := c.wantToken(t, p.Service, "dns")
			if claims.Subject != domain || claims.Method != "dns" || len(claims.Permissions) != 1 ||
				claims.Permissions[0].Resource != space+"/*" ||
				claims.Permissions[0].Policy != policy ||
				!slices.Equal(claims.Permissions[0].Actions, []string{"publish", "status"}) {
				t.Errorf("the token has %+v", claims)
			}
			checkClient(t, p, c, space+"/weather")
			p.token(t, domain, key)
		}
	})
}

// checkClient runs all commands of the publishing client that follow a login, and logs out.
func checkClient(t *testing.T, p *proofSite, c *proofClient, name string) {
	t.Helper()
	first, second := documentFile(t, fixture.NewServerDocument(name, "1.0.0")),
		documentFile(t, fixture.NewServerDocument(name, "1.1.0"))
	c.run(t, "validate", first)
	c.run(t, "publish", first)
	c.run(t, "publish", second)
	c.wantRefusal(t, "1.1.0", "publish", second)
	c.wantRefusal(t, "403", "publish", documentFile(t, fixture.NewServerDocument("org.example/weather", "1.0.0")))
	c.run(t, "status", "--status", "deprecated", "--message", "Use 1.1.0", name, "1.0.0")
	if v := p.readVersions(t,
		name); len(v) != 2 || v["1.0.0"].Status != "deprecated" || v["1.0.0"].Message() != "Use 1.1.0" ||
		v["1.1.0"].Status != "active" {
		t.Errorf("after the status of a version: %+v", v)
	}
	c.run(t, "status", "--status", "deleted", "--all-versions", "-y", name)
	if v := p.readVersions(t, name); len(v) != 2 || v["1.0.0"].Status != "deleted" || v["1.1.0"].Status != "deleted" {
		t.Errorf("after the status of all versions: %+v", v)
	}
	c.run(t, "logout")
	if _, err := os.Stat(c.tokenFile()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after logout: %v", err)
	}
	c.wantRefusal(t, "not authenticated", "publish", first)
}

// page is a web server of a domain, which listens on an address of its own.
type page struct {
	address netip.Addr
	respond http.HandlerFunc
}

// startPage runs the web server of a domain until the test ends.
func startPage(t *testing.T, p *proofSite, by *testcert.Certificate, domain string, respond http.HandlerFunc) {
	t.Helper()
	s := page{netip.MustParseAddr(newLoopbackHost()), respond}
	listener, err := net.Listen("tcp", net.JoinHostPort(s.address.String(), "443"))
	if errors.Is(err, os.ErrPermission) {
		t.Skip("needs the right to listen on port 443")
	}
	must.Succeed(t, err)
	server := httptest.NewUnstartedServer(s.respond)
	_ = server.Listener.Close() // it has another
	server.Listener = listener
	server.TLS = &tls.Config{Certificates: []tls.Certificate{by.Issue(t, domain).Pair()}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	p.dns.SetAddresses(domain, s.address)
}

// serveText returns a handler that serves a text at the path of the keys.
func serveText(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/.well-known/mcp-registry-auth" || r.Method != http.MethodGet {
			http.NotFound(w, r)
			return
		}
		_, _ = fmt.Fprint(w, text) // the client sees that it is missing
	}
}

// TestProofByHTTP publishes with the publishing client and a key on a page of the domain.
func TestProofByHTTP(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		t.Parallel()
		authority := testcert.NewAuthority(t)
		p := startProofs(t, e, "PUBLISHER_PROOF_NETWORKS=127.0.0.0/8", "PUBLISHER_PROOF_CA="+authority.CertFile)
		for _, key := range []*domainKey{newEd25519Key(t), newP384Key(t)} {
			domain, space := key.algorithm+".example", "example."+key.algorithm
			text := "# keys\n" + newEd25519Key(t).record + "\r\n\nv=MCPv1; k=ed25519; p=broken\n" + key.record + "\n"
			startPage(t, p, authority, domain, serveText(text))
			p.addPolicy(t, "--method", "http", "--domain", domain, "--pattern", space+"/*", "--action", "publish",
				"--action", "status")
			c := newProofClient(t)
			c.run(t, "login", "http", "--domain", domain, "--algorithm", key.algorithm, "--private-key", key.private,
				"--registry", p.API)
			if claims := c.wantToken(t, p.Service, "http"); claims.Subject != domain || claims.Method != "http" {
				t.Errorf("the token has %+v", claims)
			}
			checkClient(t, p, c, space+"/weather")
			readToken(t, apiclient.Call(t, "POST", p.API+"/v0/auth/http", key.proofOf(domain)))
		}
	})
}
