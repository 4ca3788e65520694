package memcached_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/memcached"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/counter/countertest"
)

// authority issues certificates for tests.
type authority struct {
	file        string
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority of the test"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	a := authority{file: filepath.Join(t.TempDir(), "ca.pem"), certificate: certificate, key: key}
	writePEM(t, a.file, "CERTIFICATE", der)
	return a
}

// issue returns the files of a certificate for an address or a name, and of its key.
func (a authority) issue(t *testing.T, host string) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: host}, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, KeyUsage: x509.KeyUsageDigitalSignature,
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &private.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	bytes, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certificate, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writePEM(t, certificate, "CERTIFICATE", der)
	writePEM(t, key, "PRIVATE KEY", bytes)
	return certificate, key
}

func writePEM(t *testing.T, path, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

// secureServer starts a memcached that speaks TLS as host; where client is set, only with those whom it issued a
// certificate. The test is skipped where memcached was built without TLS.
func secureServer(t *testing.T, a authority, host string, client *authority) *server {
	t.Helper()
	certificate, key := a.issue(t, host)
	options := "ssl_chain_cert=" + certificate + ",ssl_key=" + key
	own := &tls.Config{InsecureSkipVerify: true} // it is the test's own
	if client != nil {
		options += ",ssl_verify_mode=2,ssl_ca_cert=" + client.file
		certificate, key := client.issue(t, "test")
		pair, err := tls.LoadX509KeyPair(certificate, key)
		if err != nil {
			t.Fatal(err)
		}
		own.Certificates = []tls.Certificate{pair}
	}
	s := newServer(t, "-Z", "-o", options)
	if !speaksTLS(t) {
		t.Skip("memcached was built without TLS")
	}
	s.secure = own
	return s.start()
}

func secured(s *server, a authority) memcached.Config {
	cfg := settings(s.address)
	cfg.TLS, cfg.TLSCACert, cfg.Timeout = true, a.file, 2*time.Second
	return cfg
}

func TestCountersContractOverTLS(t *testing.T) {
	ours := newAuthority(t)
	s := secureServer(t, ours, "127.0.0.1", nil)
	subject := countertest.Subject{Store: open(t, secured(s, ours)), Key: keys(), Loose: true}
	countertest.Run(t, func(*testing.T) countertest.Subject { return subject })
}

// TestTLSVerification: skipping the host name is not skipping the authority.
func TestTLSVerification(t *testing.T) {
	ours, theirs := newAuthority(t), newAuthority(t)
	right, wrong := secureServer(t, ours, "127.0.0.1", nil), secureServer(t, ours, "other.test", nil)
	for _, c := range []struct {
		name   string
		server *server
		trust  authority
		skip   bool
		want   bool
	}{
		{"right name", right, ours, false, true},
		{"wrong name", wrong, ours, false, false},
		{"wrong name, not checked", wrong, ours, true, true},
		{"wrong authority", right, theirs, false, false},
		{"wrong authority, name not checked", right, theirs, true, false},
	} {
		cfg := secured(c.server, c.trust)
		cfg.TLSSkipVerification = c.skip
		if _, err := addHits(t, open(t, cfg), minutely("k")); (err == nil) != c.want {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	plain := settings(right.address)
	plain.Timeout = 200 * time.Millisecond
	if _, err := addHits(t, open(t, plain), minutely("k")); !fault.Is(err, fault.Unavailable) {
		t.Errorf("without TLS: %v, want fault.Unavailable", err)
	}
}

func TestClientCertificate(t *testing.T) {
	ours, clients := newAuthority(t), newAuthority(t)
	s := secureServer(t, ours, "127.0.0.1", &clients)
	cfg := secured(s, ours)
	if _, err := addHits(t, open(t, cfg), minutely("k")); !fault.Is(err, fault.Unavailable) {
		t.Errorf("without a certificate: %v, want fault.Unavailable", err)
	}
	cfg.TLSClientCert, cfg.TLSClientKey = clients.issue(t, "tollgate")
	if _, err := addHits(t, open(t, cfg), minutely("k")); err != nil {
		t.Errorf("with a certificate: %v", err)
	}
}

func TestTLSFilesThatAreMissing(t *testing.T) {
	missing, empty := filepath.Join(t.TempDir(), "missing"), filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for variable, change := range map[string]func(*memcached.Config){
		"MEMSTORE_TLS_CLIENT_CERT": func(c *memcached.Config) { c.TLSClientCert, c.TLSClientKey = missing, missing },
		"MEMSTORE_TLS_CACERT":      func(c *memcached.Config) { c.TLSCACert = missing },
		"MEMSTORE_TLS_CACERT: no":  func(c *memcached.Config) { c.TLSCACert = empty },
	} {
		cfg := settings("127.0.0.1:1")
		cfg.TLS = true
		change(&cfg)
		if _, _, err := memcached.Open(t.Context(), cfg, quiet()); err == nil || !strings.HasPrefix(err.Error(), variable) {
			t.Errorf("%v, want a sentence that begins with %s", err, variable)
		}
	}
}
