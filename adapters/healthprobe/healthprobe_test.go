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
)

func target(t *testing.T, address string) healthprobe.Target {
	t.Helper()
	u, err := url.Parse(address + "/ready")
	if err != nil {
		t.Fatal(err)
	}
	return healthprobe.Target{URL: u}
}

// TestAsk wants an answer of 200 and no other to be good, and the sentence of
// any other to say what is wrong, in one line.
func TestAsk(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		told   string // what follows the address; empty where all is well
	}{
		"ready":        {200, `{"status":"ok","dependencies":{"database":"ok"}}`, ""},
		"one down":     {503, `{"status":"unavailable","dependencies":{"database":"down","valkey":"ok","otp-log":"down"}}`, "database is down, otp-log is down"},
		"draining":     {503, `{"status":"terminating","dependencies":{"database":"ok"}}`, "it is terminating"},
		"both":         {503, `{"status":"terminating","dependencies":{"database":"down"}}`, "it is terminating, database is down"},
		"rate limits":  {503, "no configuration\nmore", "503 Service Unavailable, no configuration"},
		"no words":     {500, "", "500 Internal Server Error"},
		"other JSON":   {404, `{"error":"not found"}`, `404 Not Found, {"error":"not found"}`},
		"elsewhere":    {302, "", "302 Found"},
		"of strangers": {503, "\x1b[2Jgone", "503 Service Unavailable, \ufffd[2Jgone"},
		"endless":      {503, strings.Repeat("x", 1<<20), "503 Service Unavailable, " + strings.Repeat("x", 200)},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "/other")
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			}))
			defer s.Close()
			err := healthprobe.Check(t.Context(), target(t, s.URL))
			if c.told == "" && err != nil || c.told != "" && (!fault.Is(err, fault.Unavailable) || err.Error() != s.URL+"/ready is not ready: "+c.told) {
				t.Errorf("Ask = %v", err)
			}
		})
	}
}

// TestStrangers wants what answers everything with 200 not to be taken for a service, where /ready is asked.
func TestStrangers(t *testing.T) {
	for _, body := range []string{"OK", "", "<html>", `{"hello":1}`, `{"status":"unavailable"}`} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }))
		asked := target(t, s.URL)
		if err := healthprobe.Check(t.Context(), asked); !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "is the address right?") {
			t.Errorf("%q at /ready: %v", body, err)
		}
		asked.URL.Path = "/healthcheck" // which has words of its own
		if err := healthprobe.Check(t.Context(), asked); err != nil {
			t.Errorf("%q at /healthcheck: %v", body, err)
		}
		s.Close()
	}
}

func TestNoAnswer(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	gone := target(t, s.URL)
	s.Close()
	if err := healthprobe.Check(t.Context(), gone); !fault.Is(err, fault.Unavailable) || strings.Count(err.Error(), gone.URL.Host) > 2 ||
		!strings.Contains(err.Error(), gone.URL.String()+" does not answer") {
		t.Errorf("nobody there: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := healthprobe.Check(ended, gone); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

// TestTLS wants a certificate to be checked against what is trusted.
func TestTLS(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"status":"ok"}`) }))
	defer s.Close()
	to := target(t, s.URL)
	if err := healthprobe.Check(t.Context(), to); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a stranger's certificate: %v", err)
	}
	to.TLS = &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
	to.TLS.RootCAs.AddCert(s.Certificate())
	if err := healthprobe.Check(t.Context(), to); err != nil {
		t.Errorf("a trusted certificate: %v", err)
	}
}
