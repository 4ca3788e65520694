package httpapi

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

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/openapi"
	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/instance"
	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/test/testcert"
)

// newTLSClient returns a client that trusts one authority and opens a connection for each call.
func newTLSClient(trusted *testcert.Certificate) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{
			RootCAs: trusted.Pool(), ServerName: "registry.example", MinVersion: tls.VersionTLS12,
		},
	}}
}

// callWithClient makes one call with a client, and checks the response against the description.
func callWithClient(
	t *testing.T, c *http.Client, method, address string, body any, header ...string,
) apiclient.Response {
	t.Helper()
	encoded, err := json.Marshal(body)
	must.Succeed(t, err)
	r, err := http.NewRequest(method, address, bytes.NewReader(encoded))
	must.Succeed(t, err)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := c.Do(r)
	must.Succeed(t, err)
	defer func() { _ = response.Body.Close() }() // the body was read whole
	read, err := io.ReadAll(response.Body)
	must.Succeed(t, err)
	a := apiclient.Response{Status: response.StatusCode, Header: response.Header, Body: read}
	must.Succeed(t, openapi.CheckDescribed(r, a))
	return a
}

// TestTLS checks that the API works over TLS, that a new certificate applies without a restart, and
// that the cookie is restricted to TLS.
func TestTLS(t *testing.T) {
	e := fixture.NewEnvironment(t, "embedded")
	files := fixture.NewTLSFiles(e.Dir)
	first, second := testcert.NewAuthority(t), testcert.NewAuthority(t)
	files.Write(t, first)
	s := e.Start(t, files.Environ()...)
	api := "https://" + s.Process.API
	client := newTLSClient(first)

	a := callWithClient(t, client, "GET", api+"/v0.1/servers", nil).WantStatus(t, http.StatusOK)
	if got := a.Header.Get("Strict-Transport-Security"); got != "max-age=31536000" {
		t.Errorf("Strict-Transport-Security is %q", got)
	}
	if a, err := apiclient.TryCall("GET", s.API+"/v0.1/servers", nil); err == nil {
		t.Errorf("without TLS: %d %s", a.Status, a.Body)
	}
	wantSecureCookie(t, e, client, api)
	until := time.Unix(int64(s.Metric("tollgate_certificate_expiry_timestamp_seconds", "listener", "api")), 0)
	if left := time.Until(until); left <= 0 || left > 2*time.Hour {
		t.Errorf("the certificate is good until %v, says its metric", until)
	}

	files.Write(t, second)
	await.Until(t, "the new certificate is served", func() bool {
		r, err := newTLSClient(second).Get(api + "/health")
		if err != nil {
			return false
		}
		return r.Body.Close() == nil && r.StatusCode == http.StatusOK
	})
	fixture.WriteFile(t, files.Key, "none")
	callWithClient(t, newTLSClient(second), "GET", api+"/health", nil).WantStatus(t, http.StatusOK)
}

func wantSecureCookie(t *testing.T, e *fixture.Environment, client *http.Client, api string) {
	t.Helper()
	p := e.NewPerson(t, "ada@example.com")
	var tokens struct{ AccessToken string }
	callWithClient(t, client, "POST", api+"/auth/login", map[string]any{
		"email": p.Email, "password": fixture.Password, "deviceInfo": p.Device,
	}).
		WantStatus(t, http.StatusOK).Decode(t, &tokens)
	var challenge struct{ ChallengeID string }
	callWithClient(t, client, "POST", api+"/auth/step-up/initiate", map[string]string{"method": "EMAIL_OTP"},
		"Authorization", "Bearer "+tokens.AccessToken).WantStatus(t, http.StatusOK).Decode(t, &challenge)
	verified := callWithClient(t, client, "POST", api+"/auth/step-up/verify",
		map[string]string{"challengeId": challenge.ChallengeID, "otp": e.LastCode(t, p.Email)}).WantStatus(t,
		http.StatusOK)
	if got := strings.ToLower(
		verified.Header.Get("Set-Cookie")); !strings.HasPrefix(got, "__secure-tollgate_device=") ||
		!strings.Contains(got, "; secure") || !strings.Contains(got, "httponly") {
		t.Errorf("the cookie is %q", got)
	}
}

// TestTLSRefusedAtStart checks that the start fails with one error that names the variable.
func TestTLSRefusedAtStart(t *testing.T) {
	e := fixture.NewEnvironment(t, "embedded")
	authority := testcert.NewAuthority(t)
	one := fixture.NewTLSFiles(e.Dir)
	other := fixture.TLSFiles{Cert: filepath.Join(e.Dir, "cert2.pem"), Key: filepath.Join(e.Dir, "key2.pem")}
	one.Write(t, authority)
	other.Write(t, authority)
	for want, environ := range map[string][]string{
		"TLS_KEY: it must be set":                          {"TLS_CERT=" + one.Cert},
		"TLS_CERT: it must be set":                         {"TLS_KEY=" + one.Key},
		"TLS_CERT and TLS_KEY: tls: private key":           {"TLS_CERT=" + one.Cert, "TLS_KEY=" + other.Key},
		"TLS_CERT and TLS_KEY: open " + e.Dir + "/missing": {"TLS_CERT=" + e.Dir + "/missing", "TLS_KEY=" + one.Key},
		"HSTS_MAX_AGE: -1s is negative":                    {"HSTS_MAX_AGE=-1s"},
	} {
		_, err := instance.Start(filepath.Join(fixture.BinDir, "tollgate"),
			append(append([]string{}, e.Environ...), environ...), "serve")
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "goroutine") {
			t.Errorf("started with %v: %v", environ, err)
		}
	}
}
