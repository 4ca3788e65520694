package notifying

import (
	"crypto/tls"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/testcert"
)

// TestReceiverOverTLS sends events to receivers whose certificates the system trusts or not
// (contract C-53).
func TestReceiverOverTLS(t *testing.T) {
	t.Parallel()
	e := fixture.NewEnvironment(t, "embedded")
	trusted := testcert.NewAuthority(t)
	e.Environ = append(e.Environ, "SSL_CERT_FILE="+trusted.CertFile)
	for _, c := range []struct {
		name, host string
		authority  *testcert.Certificate
		says       string
	}{
		{"a certificate that is trusted", "127.0.0.1", trusted, "the receiver answered with the status 204"},
		{"a certificate of another host", "127.0.0.2", trusted, "the receiver has no valid certificate"},
		{
			"a certificate of an unknown authority", "127.0.0.1", testcert.NewAuthority(t),
			"the receiver has no valid certificate",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusNoContent)
			}))
			server.TLS = &tls.Config{
				MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{c.authority.Issue(t, c.host).Pair()},
			}
			server.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes that fail on purpose
			server.EnableHTTP2 = true
			server.StartTLS()
			t.Cleanup(server.Close)
			var added []webhook
			e.ReadCommand(t, &added, "webhook", "add", server.URL+secretPath, "--events", "published")
			// A process reads the certificates that the system trusts once.
			test := exec.Command(filepath.Join(fixture.BinDir, "tollgate"), "webhook", "test", added[0].ID)
			test.Env = e.Environ
			if out, _ := test.CombinedOutput(); !strings.Contains(string(out), c.says) { // it may fail
				t.Errorf("test prints %q, want %q", out, c.says)
			}
		})
	}
}
