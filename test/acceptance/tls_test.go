package acceptance

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/instance"
	"github.com/tollgate-dev/tollgate/test/testcert"
)

// tlsFiles are the certificate and the key of an API listener.
type tlsFiles struct{ cert, key string }

func (f tlsFiles) environ() []string { return []string{"TLS_CERT=" + f.cert, "TLS_KEY=" + f.key} }

// put makes the files those of a server that an authority signed for.
func (f tlsFiles) put(t *testing.T, by *testcert.Certificate) {
	t.Helper()
	server := by.Issue(t, "registry.example")
	write(t, f.key, string(server.KeyPEM))
	write(t, f.cert, string(server.CertPEM))
}

// caller is a client that trusts one authority and makes a connection for each
// call.
func caller(trusted *testcert.Certificate) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{RootCAs: trusted.Pool(), ServerName: "registry.example", MinVersion: tls.VersionTLS12},
	}}
}

// over makes one call with a client. The answer is checked against the
// description, like all.
func over(t *testing.T, c *http.Client, method, address string, body any, header ...string) answer {
	t.Helper()
	encoded, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequest(method, address, bytes.NewReader(encoded))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }() // it was read whole
	read, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	a := answer{status: response.StatusCode, header: response.Header, body: read}
	if err := asDescribed(r, a); err != nil {
		t.Fatal(err)
	}
	return a
}

// TestTLS serves the API over TLS, takes a new certificate without a restart,
// and gives out its cookie for TLS only.
func TestTLS(t *testing.T) {
	e := newEnvironment(t, "embedded")
	files := tlsFiles{filepath.Join(e.dir, "cert.pem"), filepath.Join(e.dir, "key.pem")}
	first, second := testcert.NewAuthority(t), testcert.NewAuthority(t)
	files.put(t, first)
	s := e.start(t, append(files.environ(), "HSTS_MAX_AGE=24h")...)
	api := "https://" + s.process.API
	client := caller(first)

	a := over(t, client, "GET", api+"/v0.1/servers", nil).want(t, http.StatusOK)
	if got := a.header.Get("Strict-Transport-Security"); got != "max-age=86400" {
		t.Errorf("Strict-Transport-Security is %q", got)
	}
	if a, err := try("GET", s.api+"/v0.1/servers", nil); err == nil {
		t.Errorf("without TLS: %d %s", a.status, a.body)
	}
	wantSecureCookie(t, e, client, api)
	until := time.Unix(int64(s.metric("tollgate_certificate_expiry_timestamp_seconds", "listener", "api")), 0)
	if left := time.Until(until); left <= 0 || left > 2*time.Hour {
		t.Errorf("the certificate is good until %v, says its metric", until)
	}

	files.put(t, second)
	eventually(t, "the new certificate is served", func() bool {
		r, err := caller(second).Get(api + "/health")
		if err != nil {
			return false
		}
		return r.Body.Close() == nil && r.StatusCode == http.StatusOK
	})
	write(t, files.key, "none")
	over(t, caller(second), "GET", api+"/health", nil).want(t, http.StatusOK)
}

func wantSecureCookie(t *testing.T, e *environment, client *http.Client, api string) {
	t.Helper()
	p := e.newPerson(t, "ada@example.com")
	var tokens struct{ AccessToken string }
	over(t, client, "POST", api+"/auth/login", map[string]any{"email": p.email, "password": password, "deviceInfo": p.device}).
		want(t, http.StatusOK).decode(t, &tokens)
	var challenge struct{ ChallengeID string }
	over(t, client, "POST", api+"/auth/step-up/initiate", map[string]string{"method": "EMAIL_OTP"},
		"Authorization", "Bearer "+tokens.AccessToken).want(t, http.StatusOK).decode(t, &challenge)
	verified := over(t, client, "POST", api+"/auth/step-up/verify",
		map[string]string{"challengeId": challenge.ChallengeID, "otp": e.code(t, p.email)}).want(t, http.StatusOK)
	if got := strings.ToLower(verified.header.Get("Set-Cookie")); !strings.Contains(got, "secure") || !strings.Contains(got, "httponly") {
		t.Errorf("the cookie is %q", got)
	}
}

// TestTLSRefusedAtStart wants one sentence that names the variable.
func TestTLSRefusedAtStart(t *testing.T) {
	e := newEnvironment(t, "embedded")
	authority := testcert.NewAuthority(t)
	one := tlsFiles{filepath.Join(e.dir, "cert.pem"), filepath.Join(e.dir, "key.pem")}
	other := tlsFiles{filepath.Join(e.dir, "cert2.pem"), filepath.Join(e.dir, "key2.pem")}
	one.put(t, authority)
	other.put(t, authority)
	for want, environ := range map[string][]string{
		"TLS_KEY: it must be set":                          {"TLS_CERT=" + one.cert},
		"TLS_CERT: it must be set":                         {"TLS_KEY=" + one.key},
		"TLS_CERT and TLS_KEY: tls: private key":           {"TLS_CERT=" + one.cert, "TLS_KEY=" + other.key},
		"TLS_CERT and TLS_KEY: open " + e.dir + "/missing": {"TLS_CERT=" + e.dir + "/missing", "TLS_KEY=" + one.key},
		"HSTS_MAX_AGE: -1s is negative":                    {"HSTS_MAX_AGE=-1s"},
	} {
		_, err := instance.Start(filepath.Join(built, "tollgate"), append(append([]string{}, e.environ...), environ...), "serve")
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "goroutine") {
			t.Errorf("started with %v: %v", environ, err)
		}
	}
}
