package ratelimit

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/test/testcert"
)

// runClient runs ratelimit-client against the instance and returns its exit code and its output.
func runClient(t *testing.T, s *fixture.Service, args ...string) (int, string) {
	t.Helper()
	_, port, err := net.SplitHostPort(s.GRPC)
	must.Succeed(t, err)
	cmd := exec.Command(filepath.Join(fixture.BinDir, "ratelimit-client"),
		append([]string{"-dial_string", "localhost:" + port}, args...)...)
	out, _ := cmd.CombinedOutput() // the caller checks the exit code
	return cmd.ProcessState.ExitCode(), string(out)
}

// TestClient checks the exit codes and the output of the client.
func TestClient(t *testing.T) {
	t.Parallel()
	s := newRulesEnvironment(t, fmt.Sprintf(settingRules, "d")).Start(t)
	for _, test := range []struct {
		code   int
		prints string
		args   []string
	}{
		{0, `"limitRemaining": 9`, []string{"-domain", "d", "-descriptors", "ten=x", "-descriptors", "two=x,more=y"}},
		{
			1, `"overallCode": "OVER_LIMIT"`, []string{
				"-domain", "d", "-descriptors", "ten=x", "-descriptors", "blocked=x",
			},
		},
		{2, "rate limit descriptor list must not be empty", []string{"-domain", "d"}},
		{2, "rate limit domain must not be empty", []string{"-descriptors", "ten=x"}},
		{2, "does not answer", []string{"-tls", "-domain", "d", "-descriptors", "ten=x"}},
	} {
		if code, printed := runClient(t, s, test.args...); code != test.code ||
			!strings.Contains(printed, test.prints) {
			t.Errorf("%q ended with %d, want %d, and printed: %s", test.args, code, test.code, printed)
		}
	}
}

// TestClientWithMutualTLS checks that the client sends its certificate and verifies the certificate
// of the service.
func TestClientWithMutualTLS(t *testing.T) {
	t.Parallel()
	e := newRulesEnvironment(t, fmt.Sprintf(settingRules, "d"))
	authority := testcert.NewAuthority(t)
	server, client := authority.Issue(t, "server"), authority.Issue(t, "client")
	ca := authority.CertFile
	s := e.Start(t, "GRPC_SERVER_USE_TLS=true", "GRPC_CLIENT_TLS_CACERT="+ca,
		"GRPC_SERVER_TLS_CERT="+server.CertFile, "GRPC_SERVER_TLS_KEY="+server.KeyFile)
	trusting := []string{"-domain", "d", "-descriptors", "ten=x", "-tls_cacert", ca, "-tls_server_name", "server"}
	peer := []string{
		"-domain", "d", "-descriptors", "ten=x", "-grpc-use-tls", "-grpc-server-ca-file", ca,
		"-tls_server_name", "server",
	}
	peerOwn := []string{"-grpc-cert-file", client.CertFile, "-grpc-key-file", client.KeyFile}
	own := []string{"-tls_cert", client.CertFile, "-tls_key", client.KeyFile}
	for name, test := range map[string]struct {
		code int
		args []string
	}{
		"trusted both ways":                                   {0, append(trusting, own...)},
		"no certificate":                                      {2, trusting},
		"flags of the Envoy service's client":                 {0, append(peer, peerOwn...)},
		"flags of the Envoy service's client, no certificate": {2, peer},
		"flags of the Envoy service's client, no -grpc-use-tls": {
			2, append(peerOwn, "-domain", "d", "-descriptors", "ten=x"),
		},
		"flags of the Envoy service's client, no authority known": {
			2,
			append(append([]string{}, peerOwn...), "-grpc-use-tls", "-domain", "d", "-descriptors", "ten=x",
				"-tls_server_name", "server"),
		},
		"another name": {
			2, append(append([]string{}, own...), "-domain", "d", "-descriptors", "ten=x", "-tls_cacert", ca),
		},
		"no authority known": {
			2,
			append(append([]string{}, own...), "-domain", "d", "-descriptors", "ten=x", "-tls_server_name", "server"),
		},
		"without TLS": {2, []string{"-domain", "d", "-descriptors", "ten=x"}},
	} {
		if code, printed := runClient(t, s, test.args...); code != test.code {
			t.Errorf("%s: ended with %d, want %d: %s", name, code, test.code, printed)
		}
	}
}

// TestClientSendsSpans checks that the client exports a span of its call.
func TestClientSendsSpans(t *testing.T) {
	collected := make(chan string, 10)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // the test checks the content
		collected <- r.URL.Path + " " + string(body)
	}))
	t.Cleanup(collector.Close)
	s := newRulesEnvironment(t, fmt.Sprintf(settingRules, "d")).Start(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	if code, printed := runClient(t, s, "-oltp-protocol", "http", "-domain", "d", "-descriptors", "ten=x"); code != 0 {
		t.Fatalf("ended with %d: %s", code, printed)
	}
	if got := <-collected; !strings.HasPrefix(got, "/v1/traces ") || !strings.Contains(got, "RateLimitClient") {
		t.Errorf("the collector got %q", got)
	}
	if code, printed := runClient(t, s, "-oltp-protocol", "carrier-pigeon", "-domain", "d", "-descriptors",
		"ten=x"); code != 2 {
		t.Errorf("another protocol: ended with %d: %s", code, printed)
	}
}
