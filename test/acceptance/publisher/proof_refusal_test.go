package publisher

import (
	"crypto/elliptic"
	"encoding/hex"
	"fmt"
	"math/big"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/dnsserver"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/test/testcert"
)

// prefixes are the prefixes of the paths of contract P-1.
var prefixes = []string{"/v0", "/v0.1"}

// wantRefused sends a proof under each prefix and checks the status and that the sentence contains
// all texts.
func (p *proofSite) wantRefused(t *testing.T, method string, status int, body func() any, texts ...string) {
	t.Helper()
	for _, prefix := range prefixes {
		a := apiclient.Call(t, "POST", p.API+prefix+"/auth/"+method, body())
		if a.Status != status {
			t.Errorf("%s/auth/%s: status %d, want %d: %s", prefix, method, a.Status, status, a.Body)
			continue
		}
		wantSentence(t, a, texts...)
	}
}

// wantSentence checks the sentence of a refusal. A response with status 503 must not mention that a
// record is missing.
func wantSentence(t *testing.T, a apiclient.Response, texts ...string) {
	t.Helper()
	sentence := apiclient.WantRegistryError(t, a)
	for _, text := range texts {
		if !strings.Contains(sentence, text) {
			t.Errorf("the sentence of %d is %q, without %q", a.Status, sentence, text)
		}
	}
	if a.Status == http.StatusServiceUnavailable && strings.Contains(sentence, "no record") {
		t.Errorf("a failure is reported as a missing record: %s", sentence)
	}
}

// always returns a function that returns the value.
func always(body any) func() any { return func() any { return body } }

// TestProofRefusals checks the status and the sentence of each refusal of contract P-2 to P-10.
func TestProofRefusals(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		t.Parallel()
		p := startProofs(t, e)
		t.Run("malformed", func(t *testing.T) { checkMalformed(t, p) })
		t.Run("timestamp", func(t *testing.T) { checkTimestamps(t, p) })
		t.Run("records", func(t *testing.T) { checkRecords(t, p) })
		t.Run("failures", func(t *testing.T) { checkFailures(t, p) })
		t.Run("replay", func(t *testing.T) { checkReplay(t, p) })
		t.Run("off", func(t *testing.T) { checkOff(t, e) })
	})
}

// checkMalformed: the forms of domains, times and signatures are tested in core/registry/publisher.
func checkMalformed(t *testing.T, p *proofSite) {
	key := newEd25519Key(t)
	with := func(name string, value any) any {
		body := key.proofOf("example.com")
		if body[name] = value; value == nil {
			delete(body, name)
		}
		return body
	}
	for _, method := range []string{"dns", "http"} {
		p.wantRefused(t, method, 400, always("{"), "body is not valid JSON")
		p.wantRefused(t, method, 400, always("[]"), "body must be a JSON object")
		for _, name := range []string{"domain", "timestamp", "signed_timestamp"} {
			p.wantRefused(t, method, 400, always(with(name, nil)), name+" is missing")
			p.wantRefused(t, method, 400, always(with(name, 7)), name)
		}
		p.wantRefused(t, method, 400, always(with("timestamp", "2026-01-31 12:00:00Z")), "timestamp must be an RFC 3339 time")
		p.wantRefused(t, method, 400, always(with("signed_timestamp", "none")),
			"signed_timestamp must be a signature in hexadecimal digits")
		p.wantRefused(t, method, 400, always(with("domain", "acme.github.io")), "domain ")
	}
	for _, method := range []string{"oidc", "github-oidc"} {
		if method == "oidc" { // without OIDC_ISSUERS
			p.wantRefused(t, method, 404, always(map[string]string{"oidc_token": "a.b.c"}), "OIDC_ISSUERS is not set")
		}
		p.wantRefused(t, method, 400, always("{"), "body is not valid JSON")
		p.wantRefused(t, method, 400, always("{}"), "oidc_token is missing")
	}
	p.wantRefused(t, "github-oidc", 401, always(map[string]string{"oidc_token": "none"}))
}

func checkTimestamps(t *testing.T, p *proofSite) {
	key := newEd25519Key(t)
	p.allowDomain(t, "clock.example", key, "--pattern", "example.clock/*")
	for _, off := range []time.Duration{-time.Minute, time.Minute} {
		p.wantRefused(t, "dns", 401, func() any {
			return key.proofAt("clock.example", time.Now().UTC().Add(off).Format(time.RFC3339))
		}, "the timestamp differs from the time of this service, "+time.Now().UTC().Format("2006-01-02T15:"))
	}
	body := key.proofOf("clock.example")
	body["timestamp"] = time.Now().UTC().Add(time.Second).Format(time.RFC3339Nano) // it is not what was signed
	p.wantRefused(t, "dns", 401, always(body), "none of the keys", key.fingerprint)
	zone := time.FixedZone("", int((5 * time.Hour).Seconds()))
	apiclient.Call(t, "POST", p.API+"/v0/auth/dns",
		key.proofAt("clock.example", time.Now().In(zone).Format(time.RFC3339Nano))).WantStatus(t, 200)
}

func checkRecords(t *testing.T, p *proofSite) {
	key, other, third := newEd25519Key(t), newP384Key(t), newEd25519Key(t)
	const broken = "v=MCPv1; k=ed25519; p=broken"
	p.dns.SetTXT("empty.example")
	p.dns.SetTXT("foreign.example", "v=spf1 -all")
	p.dns.SetTXT("broken.example", broken)
	p.dns.SetTXT("other.example", other.record, broken, third.record)
	for domain, texts := range map[string][]string{
		"empty.example":   {"there is no record", "empty.example"},
		"foreign.example": {"there is no record"},
		"none.example":    {"there is no record"}, // NXDOMAIN
		"broken.example":  {"the record in the TXT records of broken.example cannot be used"},
		"other.example":   {"none of the keys", other.fingerprint, third.fingerprint},
	} {
		p.wantRefused(t, "dns", 401, func() any { return key.proofOf(domain) }, texts...)
	}
	p.dns.SetTXT("nobody.example", key.record)
	p.wantRefused(t, "dns", 401, func() any { return key.proofOf("nobody.example") },
		"the proof of nobody.example holds, but nobody has allowed it",
		"tollgate publisher add --method dns --domain nobody.example")

	p.allowDomain(t, "three.example", key, "--pattern", "example.three/*")
	p.dns.SetTXT("three.example", other.record, broken, key.record)
	for _, k := range []*domainKey{key, other} {
		p.token(t, "three.example", k)
	}
}

func checkFailures(t *testing.T, p *proofSite) {
	key := newEd25519Key(t)
	for domain, failure := range map[string]dnsserver.Failure{
		"fails.example": dnsserver.ServerFailure, "refuses.example": dnsserver.Refused,
	} {
		p.dns.SetTXT(domain, key.record)
		p.dns.SetFailure(domain, failure)
		p.wantRefused(t, "dns", 503, func() any { return key.proofOf(domain) },
			"the TXT records of "+domain+" cannot be read now")
	}
	p.dns.SetFailure("silent.example", dnsserver.Silence)
	a := p.prove(t, "silent.example", key).WantStatus(t, 503)
	wantSentence(t, a, "the TXT records of silent.example cannot be read now", "did not answer in time")
}

// checkReplay checks that a proof is accepted once by all instances (contract P-4).
func checkReplay(t *testing.T, p *proofSite) {
	key := newP384Key(t)
	p.allowDomain(t, "once.example", key, "--pattern", "example.once/*")
	services := []*fixture.Service{p.Service}
	if p.e.Shared {
		services = append(services, p.e.Start(t, "HOST="+newLoopbackHost(), "PORT="+apiPort))
	}
	body := key.proofOf("once.example")
	readToken(t, apiclient.Call(t, "POST", p.API+"/v0/auth/dns", body))
	mirrored := mirror(t, body)
	for _, s := range services {
		for _, again := range []any{body, mirrored} {
			a := apiclient.Call(t, "POST", s.API+"/v0.1/auth/dns", again).WantStatus(t, 401)
			wantSentence(t, a, "this proof was used before")
		}
		readToken(t, apiclient.Call(t, "POST", s.API+"/v0.1/auth/dns", key.proofOf("once.example")))
	}
}

// mirror returns the proof with the other ECDSA signature that is valid with the same R.
func mirror(t *testing.T, body map[string]any) map[string]any {
	t.Helper()
	signature, err := hex.DecodeString(body["signed_timestamp"].(string))
	must.Succeed(t, err)
	half := len(signature) / 2
	s := new(big.Int).Sub(elliptic.P384().Params().N, new(big.Int).SetBytes(signature[half:]))
	s.FillBytes(signature[half:])
	return map[string]any{
		"domain": body["domain"], "timestamp": body["timestamp"], "signed_timestamp": hex.EncodeToString(signature),
	}
}

func checkOff(t *testing.T, e *fixture.Environment) {
	if !e.Shared { // only one instance can use the files
		e = fixture.NewEnvironment(t, "embedded")
	}
	s := e.Start(t, "PUBLISHER_PROOFS=off")
	for _, prefix := range prefixes {
		for _, method := range []string{"dns", "http", "oidc", "github-oidc"} {
			a := apiclient.Call(t, "POST", s.API+prefix+"/auth/"+method, "{}").WantStatus(t, 404)
			wantSentence(t, a, "switched off")
		}
	}
}

// TestProofRefusalsOfPages checks the refusals of proofs by HTTP (contract P-7).
func TestProofRefusalsOfPages(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		t.Parallel()
		authority := testcert.NewAuthority(t)
		p := startProofs(t, e, "PUBLISHER_PROOF_NETWORKS=127.0.0.0/8", "PUBLISHER_PROOF_CA="+authority.CertFile)
		key := newEd25519Key(t)
		status := func(code int) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
		}
		for _, c := range []struct {
			domain  string
			respond http.HandlerFunc
			status  int
			text    string
		}{
			{
				"moved.example", http.RedirectHandler("https://moved.example/other", http.StatusFound).ServeHTTP,
				401, "redirects",
			},
			{"missing.example", http.NotFound, 401, "responds with 404"},
			{"long.example", serveText(key.record + strings.Repeat("\n", 4096)), 401, "has more than 4096 bytes"},
			{"empty.example", serveText(""), 401, "there is no record"},
			{
				"other.example", serveText(newEd25519Key(t).record), 401,
				"none of the keys at https://other.example/.well-known/mcp-registry-auth",
			},
			{"nobody.example", serveText(key.record), 401, "nobody has allowed it"},
			{"busy.example", status(429), 503, "cannot be read now"},
			{"down.example", status(502), 503, "cannot be read now"},
		} {
			startPage(t, p, authority, c.domain, c.respond)
			p.wantRefused(t, "http", c.status, func() any { return key.proofOf(c.domain) }, c.text)
		}
		startPage(t, p, testcert.NewAuthority(t), "untrusted.example", serveText(key.record))
		p.wantRefused(t, "http", 503, func() any { return key.proofOf("untrusted.example") }, "no valid certificate")
		p.dns.SetAddresses("closed.example", netip.MustParseAddr(newLoopbackHost()))
		p.wantRefused(t, "http", 503, func() any { return key.proofOf("closed.example") }, "the connection failed")
		p.dns.SetAddresses("private.example", netip.MustParseAddr("10.0.0.1"))
		p.wantRefused(t, "http", 401, func() any { return key.proofOf("private.example") }, "not public")
		p.dns.SetFailure("fails.example", dnsserver.ServerFailure)
		p.wantRefused(t, "http", 503, func() any { return key.proofOf("fails.example") }, "cannot be read now")
	})
}

// TestProofGivesOneToken checks that a proof that gave nothing can be repeated, and that of
// parallel uses of one proof, on two instances, one gives a token (contract P-4).
func TestProofGivesOneToken(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		t.Parallel()
		p := startProofs(t, e)
		places := []string{p.API, p.API}
		if e.Name == "production" { // counters in the process are not shared
			places[1] = e.Start(t).API
		}
		key := newEd25519Key(t)
		p.dns.SetTXT("example.com", key.record)
		proof := key.proofOf("example.com")
		for _, place := range places {
			a := apiclient.Call(t, "POST", place+"/v0/auth/dns", proof).WantStatus(t, 401)
			if wantSentence(t, a, "nobody has allowed it"); a.Header.Get("Retry-After") != "" {
				t.Errorf("a proof that nobody has allowed has Retry-After %q", a.Header.Get("Retry-After"))
			}
		}
		p.allowDomain(t, "example.com", key, "--pattern", "com.example/*")
		given := 0
		for _, a := range fixture.CallInParallel(t, 8, func(i int) (apiclient.Response, error) {
			return apiclient.TryCall("POST", places[i%2]+"/v0/auth/dns", proof)
		}) {
			if a.Status == 200 {
				given++
				continue
			}
			wantSentence(t, a.WantStatus(t, 401), "one login per second and key: repeat in a second")
			if a.Header.Get("Retry-After") != "1" {
				t.Errorf("a proof that was used has Retry-After %q, want 1", a.Header.Get("Retry-After"))
			}
		}
		if given != 1 {
			t.Errorf("%d of 8 uses of one proof gave a token", given)
		}
	})
}

// awaitNewMinute waits until enough of a minute is left for a test of a limit per minute.
func awaitNewMinute(t *testing.T) {
	t.Helper()
	await.Until(t, "the next minute", func() bool { return time.Now().Second() < 40 })
}

// TestProofLimits checks that the limits count before DNS is asked, and hold exactly for proofs at
// the same time, which share one question (contract P-6, P-19).
func TestProofLimits(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		t.Parallel()
		p := startProofs(t, e, "PUBLISHER_DOMAIN_LIMIT=12", "PUBLISHER_PROOF_LIMIT=25")
		key := newEd25519Key(t)
		p.allowDomain(t, "example.com", key, "--pattern", "com.example/*")
		bodies := make([]map[string]any, 20)
		awaitNewMinute(t)
		for i := range bodies {
			bodies[i] = key.proofAt("example.com",
				time.Now().UTC().Add(time.Duration(i)*time.Millisecond).Format(time.RFC3339Nano))
		}
		count := map[int]int{}
		for _, a := range fixture.CallInParallel(t, len(bodies), func(i int) (apiclient.Response, error) {
			return apiclient.TryCall("POST", p.API+"/v0/auth/dns", bodies[i])
		}) {
			if count[a.Status]++; a.Status == 429 {
				wantSentence(t, a, "too many proofs of example.com")
			}
		}
		if count[200] != 12 || count[429] != 8 {
			t.Errorf("20 proofs at once with a limit of 12: %v", count)
		}
		if most := p.dns.MostOpen("example.com"); most != 1 {
			t.Errorf("%d questions for one name at the same time", most)
		}
		asked := p.dns.Questions("example.com", dnsmessage.TypeTXT)
		p.prove(t, "example.com", key).WantStatus(t, 429)
		if p.dns.Questions("example.com", dnsmessage.TypeTXT) != asked {
			t.Error("a proof over the limit reads the records")
		}
		for i := range 4 { // the last ones of 25
			p.prove(t, fmt.Sprintf("other%d.example", i), key).WantStatus(t, 401)
		}
		wantSentence(t, p.prove(t, "other.example", key).WantStatus(t, 429), "too many proofs from this address")
		if p.dns.Questions("other.example", dnsmessage.TypeTXT) != 0 {
			t.Error("a proof over the limit of the address reads the records")
		}
	})
}
