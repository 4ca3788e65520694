package ratelimitapi_test

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
	"testing"
	"time"

	"google.golang.org/grpc/credentials"

	ratelimitpb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/tollgate-dev/tollgate/adapters/ratelimitapi"
)

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func certificate(t *testing.T, name string, by *authority) (certPEM, keyPEM []byte, made *authority) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: by == nil, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	parent, signer := template, key
	if by != nil {
		parent, signer = by.cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certPEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM = pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})
	return certPEM, keyPEM, &authority{cert, key, certPEM}
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	_, _, a := certificate(t, "authority", nil)
	return a
}

func put(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// call makes one call over a connection of its own.
func (b *bench) call(t *testing.T, trusted *authority, client *tls.Certificate) error {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(trusted.pem)
	c := &tls.Config{RootCAs: pool, ServerName: "server", MinVersion: tls.VersionTLS12}
	if client != nil {
		c.Certificates = []tls.Certificate{*client}
	}
	_, err := ratelimitpb.NewRateLimitServiceClient(b.dial(t, credentials.NewTLS(c))).ShouldRateLimit(t.Context(), request("k"))
	return err
}

func TestTLSFollowsItsFiles(t *testing.T) {
	dir := t.TempDir()
	c := config()
	c.TLS = ratelimitapi.TLSConfig{Enabled: true, Cert: filepath.Join(dir, "cert"), Key: filepath.Join(dir, "key")}
	refused(t, c, "GRPC_SERVER_TLS_CERT")
	first, second := newAuthority(t), newAuthority(t)
	cert, key, _ := certificate(t, "server", first)
	put(t, c.TLS.Cert, cert)
	put(t, c.TLS.Key, key)
	b := open(t, c, nil)
	b.load(t)
	if err := b.call(t, first, nil); err != nil {
		t.Fatal(err)
	}
	put(t, c.TLS.Cert, []byte("broken"))
	if err := b.call(t, first, nil); err != nil {
		t.Errorf("while the files are broken: %v", err)
	}
	cert, key, _ = certificate(t, "server", second)
	put(t, c.TLS.Cert, cert)
	put(t, c.TLS.Key, append(key, '\n'))
	if err := b.call(t, second, nil); err != nil {
		t.Errorf("after the change: %v", err)
	}
	if b.call(t, first, nil) == nil {
		t.Error("the old certificate is still in use")
	}
}

func TestMutualTLS(t *testing.T) {
	dir := t.TempDir()
	ours, other := newAuthority(t), newAuthority(t)
	c := config()
	c.TLS = ratelimitapi.TLSConfig{
		Enabled: true, Cert: filepath.Join(dir, "cert"), Key: filepath.Join(dir, "key"),
		ClientCA: filepath.Join(dir, "ca"), ClientSAN: "proxy",
	}
	cert, key, _ := certificate(t, "server", ours)
	put(t, c.TLS.Cert, cert)
	put(t, c.TLS.Key, key)
	put(t, c.TLS.ClientCA, ours.pem)
	b := open(t, c, nil)
	b.load(t)
	client := func(name string, by *authority) *tls.Certificate {
		cert, key, _ := certificate(t, name, by)
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		return &pair
	}
	if err := b.call(t, ours, client("proxy", ours)); err != nil {
		t.Errorf("the right client: %v", err)
	}
	if b.call(t, ours, nil) == nil || b.call(t, ours, client("proxy", other)) == nil || b.call(t, ours, client("stranger", ours)) == nil {
		t.Error("a client without the right certificate gets in")
	}
	put(t, c.TLS.ClientCA, []byte("none"))
	refused(t, c, "GRPC_CLIENT_TLS_CACERT")
}
