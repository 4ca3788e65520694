package notifying

import (
	"crypto/tls"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
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
	e.Start(t)
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
			if stdout, stderr, _ := e.TryCommand(t, "", "webhook", "test",
				added[0].ID); !strings.Contains(stdout+stderr, c.says) {
				t.Errorf("test prints %q and %q, want %q", stdout, stderr, c.says)
			}
		})
	}
}
