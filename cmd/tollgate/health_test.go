package main

import (
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/rest"
)

// TestHealthAddress checks that the health check turns the listen address of the settings into an
// address that it can call.
func TestHealthAddress(t *testing.T) {
	for want, c := range map[string]rest.Config{
		"http://127.0.0.1:3000/ready":  {Host: "0.0.0.0", Port: 3000},
		"http://[::1]:1/ready":         {Host: "::", Port: 1},
		"http://192.0.2.7:2/ready":     {Host: "192.0.2.7", Port: 2},
		"http://[2001:db8::1]:3/ready": {Host: "2001:db8::1", Port: 3},
		"http://localhost:4/ready":     {Host: "localhost", Port: 4},
		"https://127.0.0.1:443/ready":  {Port: 443, TLS: rest.TLSConfig{Cert: "tls.crt"}},
	} {
		got, err := localTarget(c)
		if err != nil || got.URL.String() != want || (got.TLS != nil) != (c.TLS.Cert != "") {
			t.Errorf("%+v: %v (%v), want %s", c, got.URL, err, want)
		}
	}
	if _, err := localTarget(rest.Config{Host: "0.0.0.0"}); err == nil || !strings.Contains(err.Error(), "--url") {
		t.Errorf("an unknown port: %v", err)
	}
}

func TestHealth(t *testing.T) {
	requested := make(chan string, 10)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/slow":
			<-r.Context().Done()
			return
		case "/down":
			w.WriteHeader(http.StatusServiceUnavailable)
		case "/ready":
			_, _ = io.WriteString(w, `{"status":"ok","dependencies":{}}`) // the client may be gone
		}
		requested <- r.URL.Path
	})
	plain, secure := httptest.NewServer(handler), httptest.NewTLSServer(handler)
	defer plain.Close()
	defer secure.Close()
	service, err := url.Parse(plain.URL)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	authority, empty := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "empty")
	content := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})
	if err := os.WriteFile(authority, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		path string // of the request to the service
		want string // text in the error; empty for success
	}{
		{nil, "/ready", ""},
		{[]string{"--url", plain.URL}, "/ready", ""},
		{[]string{"--url", plain.URL + "/"}, "/ready", ""},
		{[]string{"--url", plain.URL + "/healthcheck"}, "/healthcheck", ""},
		{[]string{"--url", secure.URL, "--ca-cert", authority}, "/ready", ""},
		{[]string{"--url", plain.URL + "/down"}, "/down", "is not ready: 503"},
		{[]string{"--url", secure.URL}, "", "does not answer"},
		{[]string{"--url", plain.URL + "/slow", "--timeout", "50ms"}, "", "within 50ms"},
		{[]string{"--timeout", "0s"}, "", "--timeout"},
		{[]string{"--timeout", "long"}, "", "--timeout"},
		{[]string{"--url", "localhost"}, "", "--url"},
		{[]string{"--url", secure.URL, "--ca-cert", empty}, "", "--ca-cert"},
		{[]string{"--url", secure.URL, "--ca-cert", empty + "/missing"}, "", "--ca-cert"},
		{[]string{"--ca-cert", authority}, "", "--ca-cert"},
	} {
		var stdout, stderr strings.Builder
		code := run(t.Context(), process{
			args: append([]string{"health"}, c.args...), environ: []string{"HOST=" + service.Hostname(), "PORT=" + service.Port()},
			stdout: &stdout, stderr: &stderr,
		})
		if c.want == "" && (code != exitOK || stderr.String() != "" || !strings.HasSuffix(stdout.String(), c.path+" is ready\n")) ||
			c.want != "" && (code != exitFailed || stdout.String() != "" || !strings.Contains(stderr.String(), c.want) || strings.Count(stderr.String(), "\n") != 1) {
			t.Errorf("%v: code %d, %q, %q", c.args, code, stdout.String(), stderr.String())
		}
		if c.path != "" {
			if got := <-requested; got != c.path {
				t.Errorf("%v: called %s, want %s", c.args, got, c.path)
			}
		}
	}
}
