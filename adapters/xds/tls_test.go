package xds

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/tollgate-dev/tollgate/core/ratelimit/reload"
)

// identity is a certificate with its key, on files.
type identity struct {
	cert, key string // paths
	parsed    *x509.Certificate
	signer    *ecdsa.PrivateKey
}

// issue makes a certificate for a name, signed by an authority, or its own one.
func issue(t *testing.T, dir, name string, by *identity) *identity {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: by == nil, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	made := &identity{cert: filepath.Join(dir, name+".crt"), key: filepath.Join(dir, name+".key"), signer: key}
	parent, signer := template, key
	if by != nil {
		parent, signer = by.parsed, by.signer
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	if made.parsed, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	writePEM(t, made.cert, "CERTIFICATE", der)
	writePEM(t, made.key, "PRIVATE KEY", secret)
	return made
}

func writePEM(t *testing.T, path, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

// secured runs a management server over TLS, which wants client certificates of
// an authority, where one is given.
func secured(t *testing.T, own, clients *identity) *manager {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(own.cert, own.key)
	if err != nil {
		t.Fatal(err)
	}
	c := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	if clients != nil {
		c.ClientCAs = x509.NewCertPool()
		c.ClientCAs.AddCert(clients.parsed)
		c.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return newManager(t, grpc.Creds(credentials.NewTLS(c)))
}

// followRefused follows a source that cannot connect, and returns once it has
// said so.
func followRefused(t *testing.T, m *manager, c Config) *reload.Rules {
	t.Helper()
	told := make(failures, 1000)
	log := logrus.New()
	log.SetOutput(told)
	s, cleanup, err := Open(c, logrus.NewEntry(log))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cleanup)
	rules := follow(t, s)
	select {
	case line := <-told:
		if !strings.Contains(line, "cannot be reached") && !strings.Contains(line, "ended") {
			t.Fatalf("told %q", line)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("nothing is told of a server that cannot be reached")
	}
	if m.seen() > 0 {
		t.Fatal("the server was asked all the same")
	}
	return rules
}

// failures takes the lines of a log.
type failures chan string

func (f failures) Write(line []byte) (int, error) {
	f <- string(line)
	return len(line), nil
}

func TestTLS(t *testing.T) {
	dir := t.TempDir()
	ca := issue(t, dir, "ca", nil)
	m := secured(t, issue(t, dir, "localhost", ca), nil)
	c := settings(strings.Replace(m.address, "127.0.0.1", "localhost", 1))
	c.TLS = TLSConfig{Enabled: true, CACert: ca.cert}
	rules := follow(t, open(t, c))
	m.await("acknowledgement", acknowledges(m.offer(domains("secure")...)))
	wantDomains(t, rules, "secure")
}

func TestTLSWithAnotherName(t *testing.T) {
	dir := t.TempDir()
	ca := issue(t, dir, "ca", nil)
	m := secured(t, issue(t, dir, "control.example", ca), nil)
	c := settings(m.address)
	c.TLS = TLSConfig{Enabled: true, CACert: ca.cert, SAN: "control.example"}
	rules := follow(t, open(t, c))
	m.await("acknowledgement", acknowledges(m.offer(domains("secure")...)))
	wantDomains(t, rules, "secure")
}

// TestMutualTLS begins with a client certificate that the server does not trust
// and renews it, with the file of the authorities, while the service runs.
func TestMutualTLS(t *testing.T) {
	dir := t.TempDir()
	ca := issue(t, dir, "ca", nil)
	m := secured(t, issue(t, dir, "control.example", ca), ca)
	stranger := issue(t, t.TempDir(), "client", nil)
	c := settings(m.address)
	c.TLS = TLSConfig{
		Enabled: true, CACert: filepath.Join(dir, "trusted.crt"), Cert: stranger.cert, Key: stranger.key, SAN: "control.example",
	}
	writePEM(t, c.TLS.CACert, "CERTIFICATE", stranger.parsed.Raw)
	rules := followRefused(t, m, c)
	good := issue(t, dir, "client", ca)
	rename(t, good.key, stranger.key)
	rename(t, good.cert, stranger.cert)
	rename(t, ca.cert, c.TLS.CACert)
	m.await("acknowledgement", acknowledges(m.offer(domains("secure")...)))
	wantDomains(t, rules, "secure")
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// TestTLSRefuses wants each server that must not be trusted left alone.
func TestTLSRefuses(t *testing.T) {
	dir := t.TempDir()
	ca, other := issue(t, dir, "ca", nil), issue(t, dir, "other", nil)
	own := issue(t, dir, "control.example", ca)
	for name, c := range map[string]TLSConfig{
		"another authority": {Enabled: true, CACert: other.cert, SAN: "control.example"},
		"another name":      {Enabled: true, CACert: ca.cert, SAN: "else.example"},
		"the host's name":   {Enabled: true, CACert: ca.cert},
		"no TLS":            {},
	} {
		t.Run(name, func(t *testing.T) {
			m := secured(t, own, nil)
			wrong := settings(m.address)
			wrong.TLS = c
			if rules := followRefused(t, m, wrong); rules.Current() != nil {
				t.Error("rules are in force")
			}
		})
	}
}
