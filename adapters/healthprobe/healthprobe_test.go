package healthprobe_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/healthprobe"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/test/must"
)

func target(t *testing.T, address string) healthprobe.Target {
	t.Helper()
	u, err := url.Parse(address + "/ready")
	must.Succeed(t, err)
	return healthprobe.Target{URL: u}
}

// TestCheck expects success only for 200, and otherwise an error of one line that says what is
// wrong.
func TestCheck(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		reason string // after the address; empty for success
	}{
		"degraded": {200, `{"status":"degraded","dependencies":{"company_sign_in":"down"}}`, ""},
		"ready":    {200, `{"status":"ok","dependencies":{"database":"ok"}}`, ""},
		"one down": {
			503, `{"status":"unavailable","dependencies":{"database":"down","valkey":"ok","otp-log":"down"}}`,
			"database is down, otp-log is down",
		},
		"draining": {503, `{"status":"terminating","dependencies":{"database":"ok"}}`, "it is terminating"},
		"draining and down": {
			503, `{"status":"terminating","dependencies":{"database":"down"}}`, "it is terminating, database is down",
		},
		"rate limits":        {503, "no configuration\nmore", "503 Service Unavailable, no configuration"},
		"empty body":         {500, "", "500 Internal Server Error"},
		"other JSON":         {404, `{"error":"not found"}`, `404 Not Found, {"error":"not found"}`},
		"redirect":           {302, "", "302 Found"},
		"control characters": {503, "\x1b[2Jgone", "503 Service Unavailable, \ufffd[2Jgone"},
		"long body":          {503, strings.Repeat("x", 1<<20), "503 Service Unavailable, " + strings.Repeat("x", 200)},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "/other")
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			}))
			defer s.Close()
			err := healthprobe.Check(t.Context(), target(t, s.URL))
			if c.reason == "" && err != nil ||
				c.reason != "" &&
					(!fault.Is(err, fault.Unavailable) || err.Error() != s.URL+"/ready is not ready: "+c.reason) {
				t.Errorf("Check = %v", err)
			}
		})
	}
}

// TestOtherServers expects an error for a server that responds to /ready with 200 and another body.
func TestOtherServers(t *testing.T) {
	for _, body := range []string{"OK", "", "<html>", `{"hello":1}`, `{"status":"unavailable"}`} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, body)
		}))
		to := target(t, s.URL)
		if err := healthprobe.Check(t.Context(), to); !fault.Is(err, fault.Unavailable) ||
			!strings.Contains(err.Error(), "check the address") {
			t.Errorf("%q at /ready: %v", body, err)
		}
		to.URL.Path = "/healthcheck" // whose body is not checked
		if err := healthprobe.Check(t.Context(), to); err != nil {
			t.Errorf("%q at /healthcheck: %v", body, err)
		}
		s.Close()
	}
}

func TestNoAnswer(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	gone := target(t, s.URL)
	s.Close()
	if err := healthprobe.Check(t.Context(),
		gone); !fault.Is(err, fault.Unavailable) || strings.Count(err.Error(), gone.URL.Host) > 2 ||
		!strings.Contains(err.Error(), gone.URL.String()+" does not answer") {
		t.Errorf("no server: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := healthprobe.Check(ended, gone); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

// TestTLS expects the certificate of the server to be verified.
func TestTLS(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"status":"ok"}`)
	}))
	defer s.Close()
	to := target(t, s.URL)
	if err := healthprobe.Check(t.Context(), to); !fault.Is(err, fault.Unavailable) {
		t.Errorf("an untrusted certificate: %v", err)
	}
	to.TLS = &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
	to.TLS.RootCAs.AddCert(s.Certificate())
	if err := healthprobe.Check(t.Context(), to); err != nil {
		t.Errorf("a trusted certificate: %v", err)
	}
}
