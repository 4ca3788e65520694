package program

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

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/test/must"
)

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
	must.Succeed(t, err)
	dir := t.TempDir()
	authority, empty := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "empty")
	content := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})
	must.Succeed(t, os.WriteFile(authority, content, 0o600))
	must.Succeed(t, os.WriteFile(empty, nil, 0o600))
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
		code := Run(t.Context(), cli.Process{
			Args: append([]string{"health"}, c.args...), Environ: []string{
				"HOST=" + service.Hostname(), "PORT=" + service.Port(),
			},
			Stdout: &stdout, Stderr: &stderr,
		})
		if c.want == "" &&
			(code != cli.ExitOK || stderr.String() != "" ||
				!strings.HasSuffix(stdout.String(), c.path+" is ready\n")) ||
			c.want != "" &&
				(code != cli.ExitFailed || stdout.String() != "" || !strings.Contains(stderr.String(), c.want) ||
					strings.Count(stderr.String(), "\n") != 1) {
			t.Errorf("%v: code %d, %q, %q", c.args, code, stdout.String(), stderr.String())
		}
		if c.path != "" {
			if got := <-requested; got != c.path {
				t.Errorf("%v: called %s, want %s", c.args, got, c.path)
			}
		}
	}
}
