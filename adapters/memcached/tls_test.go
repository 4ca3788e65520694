package memcached_test

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/memcached"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/counter/countertest"
	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/test/testcert"
)

// newSecureServer starts a memcached with TLS and a certificate for host. If clients is not nil,
// clients need a certificate of that authority. It skips the test if memcached was built without
// TLS.
func newSecureServer(
	t *testing.T, authority *testcert.Certificate, host string, clients *testcert.Certificate,
) *server {
	t.Helper()
	certificate := authority.Issue(t, host)
	options := "ssl_chain_cert=" + certificate.CertFile + ",ssl_key=" + certificate.KeyFile
	own := &tls.Config{InsecureSkipVerify: true} // the test itself started this server
	if clients != nil {
		options += ",ssl_verify_mode=2,ssl_ca_cert=" + clients.CertFile
		own.Certificates = []tls.Certificate{clients.Issue(t, "test").Pair()}
	}
	s := newServer(t, "-Z", "-o", options)
	if !supportsTLS(t) {
		t.Skip("memcached was built without TLS")
	}
	s.secure = own
	return s.start()
}

func newSecureConfig(s *server, authority *testcert.Certificate) memcached.Config {
	cfg := newConfig(s.address)
	cfg.TLS, cfg.TLSCACert, cfg.Timeout = true, authority.CertFile, 2*time.Second
	return cfg
}

func TestCountersContractOverTLS(t *testing.T) {
	ours := testcert.NewAuthority(t)
	s := newSecureServer(t, ours, "127.0.0.1", nil)
	subject := countertest.Subject{Store: openClient(t, newSecureConfig(s, ours)), Key: newKeys(), Loose: true}
	countertest.Run(t, func(*testing.T) countertest.Subject { return subject })
}

// TestTLSVerification checks that without verification of the host name, the authority is still
// verified.
func TestTLSVerification(t *testing.T) {
	ours, theirs := testcert.NewAuthority(t), testcert.NewAuthority(t)
	right, wrong := newSecureServer(t, ours, "127.0.0.1", nil), newSecureServer(t, ours, "other.test", nil)
	for _, c := range []struct {
		name   string
		server *server
		trust  *testcert.Certificate
		skip   bool
		want   bool
	}{
		{"right name", right, ours, false, true},
		{"wrong name", wrong, ours, false, false},
		{"wrong name, not checked", wrong, ours, true, true},
		{"wrong authority", right, theirs, false, false},
		{"wrong authority, name not checked", right, theirs, true, false},
	} {
		cfg := newSecureConfig(c.server, c.trust)
		cfg.TLSSkipVerification = c.skip
		if _, err := addHits(t, openClient(t, cfg), newMinuteHit("k")); (err == nil) != c.want {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	plain := newConfig(right.address)
	plain.Timeout = 200 * time.Millisecond
	if _, err := addHits(t, openClient(t, plain), newMinuteHit("k")); !fault.Is(err, fault.Unavailable) {
		t.Errorf("without TLS: %v, want fault.Unavailable", err)
	}
}

func TestClientCertificate(t *testing.T) {
	ours, clients := testcert.NewAuthority(t), testcert.NewAuthority(t)
	s := newSecureServer(t, ours, "127.0.0.1", clients)
	cfg := newSecureConfig(s, ours)
	if _, err := addHits(t, openClient(t, cfg), newMinuteHit("k")); !fault.Is(err, fault.Unavailable) {
		t.Errorf("without a certificate: %v, want fault.Unavailable", err)
	}
	own := clients.Issue(t, "tollgate")
	cfg.TLSClientCert, cfg.TLSClientKey = own.CertFile, own.KeyFile
	if _, err := addHits(t, openClient(t, cfg), newMinuteHit("k")); err != nil {
		t.Errorf("with a certificate: %v", err)
	}
}

func TestTLSFilesThatAreMissing(t *testing.T) {
	missing, empty := filepath.Join(t.TempDir(), "missing"), filepath.Join(t.TempDir(), "empty")
	must.Succeed(t, os.WriteFile(empty, nil, 0o600))
	for variable, change := range map[string]func(*memcached.Config){
		"MEMSTORE_TLS_CLIENT_CERT": func(c *memcached.Config) { c.TLSClientCert, c.TLSClientKey = missing, missing },
		"MEMSTORE_TLS_CACERT":      func(c *memcached.Config) { c.TLSCACert = missing },
		"MEMSTORE_TLS_CACERT: no":  func(c *memcached.Config) { c.TLSCACert = empty },
	} {
		cfg := newConfig("127.0.0.1:1")
		cfg.TLS = true
		change(&cfg)
		if _, _, err := memcached.Open(t.Context(), cfg, discardLog()); err == nil ||
			!strings.HasPrefix(err.Error(), variable) {
			t.Errorf("%v, want an error that begins with %s", err, variable)
		}
	}
}
