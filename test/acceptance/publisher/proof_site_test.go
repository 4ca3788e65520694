package publisher

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/dnsserver"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// proofSite is a service that publishers prove themselves to, and the DNS server that it uses.
type proofSite struct {
	*fixture.Service
	e       *fixture.Environment
	dns     *dnsserver.Server
	notices string // the file of the notices
}

// startProofs runs a service for publishers. settings also count for operator commands.
func startProofs(t *testing.T, e *fixture.Environment, settings ...string) *proofSite {
	t.Helper()
	p := &proofSite{e: e, dns: dnsserver.Start(t), notices: e.Dir + "/notices.jsonl"}
	host := newLoopbackHost()
	e.Environ = append(e.Environ, fixture.RegistrySettings()...)
	e.Environ = append(e.Environ, "PUBLISHER_DNS_RESOLVER="+p.dns.Address, "NOTICE_LOG_FILE="+p.notices,
		"PUBLISHER_PROOF_LIMIT=0", "PUBLISHER_DOMAIN_LIMIT=0", "PUBLIC_URL=http://"+net.JoinHostPort(host, apiPort))
	e.Environ = append(e.Environ, settings...)
	p.Service = e.Start(t, "HOST="+host, "PORT="+apiPort)
	return p
}

// apiPort is the port of the API of a site. Each site has an address of its own.
const apiPort = "8080"

var usedHosts atomic.Int64

// newLoopbackHost returns a loopback address that no other test of this machine uses.
func newLoopbackHost() string {
	pid, n := os.Getpid(), usedHosts.Add(1)
	return fmt.Sprintf("127.%d.%d.%d", 64+pid>>8&63, pid&255, n)
}

// addPolicy adds a policy by the operator command and returns its ID.
func (p *proofSite) addPolicy(t *testing.T, args ...string) string {
	t.Helper()
	var added []struct{ ID, State string }
	p.e.ReadCommand(t, &added, append([]string{"publisher", "add"}, args...)...)
	if len(added) != 1 || added[0].State != "active" {
		t.Fatalf("added %+v", added)
	}
	return added[0].ID
}

// allowDomain adds a policy for a domain and publishes a key in its TXT records.
func (p *proofSite) allowDomain(t *testing.T, domain string, key *domainKey, args ...string) (policy string) {
	t.Helper()
	p.dns.SetTXT(domain, key.record)
	return p.addPolicy(t, append([]string{"--method", "dns", "--domain", domain}, args...)...)
}

// prove sends a proof of a domain by DNS.
func (p *proofSite) prove(t *testing.T, domain string, key *domainKey) apiclient.Response {
	t.Helper()
	return apiclient.Call(t, "POST", p.API+"/v0/auth/dns", key.proofOf(domain))
}

// token returns the token for a proof of a domain by DNS.
func (p *proofSite) token(t *testing.T, domain string, key *domainKey) string {
	t.Helper()
	return readToken(t, p.prove(t, domain, key))
}

// readToken returns the token of a response to a proof, which must be a success (contract P-2).
func readToken(t *testing.T, a apiclient.Response) string {
	t.Helper()
	var got struct {
		Token     string `json:"registry_token"`
		ExpiresAt int64  `json:"expires_at"`
	}
	a.WantStatus(t, http.StatusOK).Decode(t, &got)
	if c := readClaims(t, got.Token); c.Type != "at+jwt" || c.Session != "" || c.ExpiresAt != got.ExpiresAt ||
		c.ExpiresAt-c.IssuedAt != 300 {
		t.Errorf("the token expires at %d and has %+v", got.ExpiresAt, c)
	}
	return got.Token
}

// publish publishes a version with a token and returns the response.
func (p *proofSite) publish(t *testing.T, token, name, version string) apiclient.Response {
	t.Helper()
	return apiclient.Call(t, "POST", p.API+"/v0/publish", fixture.NewServerDocument(name, version), "Authorization",
		"Bearer "+token)
}

// setStatus changes the status of a version with a token and returns the response.
func (p *proofSite) setStatus(t *testing.T, token, name, version string) apiclient.Response {
	t.Helper()
	address := p.API + "/v0" + fixture.ServerPath(name, version) + "/status"
	return apiclient.Call(t, "PATCH", address, map[string]string{"status": "deprecated"}, "Authorization",
		"Bearer "+token)
}

// readVersions returns the state of each version of a server.
func (p *proofSite) readVersions(t *testing.T, name string) map[string]fixture.VersionState {
	t.Helper()
	var list fixture.ServerPage
	apiclient.Call(t, "GET", p.API+"/v0"+fixture.ServerPath(name)+"/versions?include_deleted=true", nil).
		WantStatus(t, http.StatusOK).Decode(t, &list)
	states := map[string]fixture.VersionState{}
	for _, r := range list.Servers {
		states[r.Server["version"].(string)] = r.Official()
	}
	return states
}

// readEvents returns the audit events of a type, the newest first.
func (p *proofSite) readEvents(t *testing.T, kind string) []fixture.AuditEvent {
	t.Helper()
	var events []fixture.AuditEvent
	p.e.ReadCommand(t, &events, "audit", "search", "--type", kind, "--limit", "0")
	return events
}

// domainKey is a key of a domain.
type domainKey struct {
	algorithm   string
	private     string // as the publishing client takes it
	record      string
	fingerprint string
	sign        func(message string) []byte
}

func newDomainKey(algorithm, private string, public []byte, sign func(string) []byte) *domainKey {
	text := base64.StdEncoding.EncodeToString(public)
	return &domainKey{
		algorithm: algorithm, private: private, sign: sign,
		record: "v=MCPv1; k=" + algorithm + "; p=" + text, fingerprint: algorithm + ":" + text[:8],
	}
}

func newEd25519Key(t *testing.T) *domainKey {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	must.Succeed(t, err)
	return newDomainKey("ed25519", hex.EncodeToString(private.Seed()), public,
		func(m string) []byte { return ed25519.Sign(private, []byte(m)) })
}

func newP384Key(t *testing.T) *domainKey {
	t.Helper()
	const size = 48 // bytes of a coordinate
	private, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	must.Succeed(t, err)
	point, err := private.PublicKey.Bytes()
	must.Succeed(t, err)
	secret, err := private.Bytes()
	must.Succeed(t, err)
	compressed := append([]byte{2 + point[len(point)-1]&1}, point[1:1+size]...) // SEC 1, 2.3.3
	return newDomainKey("ecdsap384", hex.EncodeToString(secret), compressed, func(m string) []byte {
		digest := sha512.Sum384([]byte(m))
		r, s, err := ecdsa.Sign(rand.Reader, private, digest[:])
		if err != nil {
			t.Error(err)
			return nil
		}
		signature := make([]byte, 2*size)
		r.FillBytes(signature[:size])
		s.FillBytes(signature[size:])
		return signature
	})
}

// proofOf returns the body of a new proof of a domain.
func (k *domainKey) proofOf(domain string) map[string]any {
	return k.proofAt(domain, time.Now().UTC().Format(time.RFC3339Nano))
}

// proofAt returns the body of a proof of a domain with a timestamp.
func (k *domainKey) proofAt(domain, timestamp string) map[string]any {
	return map[string]any{
		"domain": domain, "timestamp": timestamp, "signed_timestamp": hex.EncodeToString(k.sign(timestamp)),
	}
}
