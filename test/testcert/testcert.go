// Package testcert issues TLS certificates for tests.
package testcert

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
	"testing"
	"time"
)

// Certificate is a certificate with its private key, in memory and in files. The files are removed
// when the test ends.
type Certificate struct {
	CertPEM, KeyPEM   []byte
	CertFile, KeyFile string

	leaf *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority returns a certificate authority: a self-signed certificate that may sign others.
func NewAuthority(t testing.TB) *Certificate {
	t.Helper()
	template := newTemplate(t, "test authority")
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	return sign(t, template, nil)
}

// Issue returns a certificate for servers and clients, signed by c, an authority. Host is its
// common name and, as an IP address or a DNS name, its only subject alternative name.
func (c *Certificate) Issue(t testing.TB, host string) *Certificate {
	t.Helper()
	template := newTemplate(t, host)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	return sign(t, template, c)
}

// Pair returns the certificate and its key for a tls.Config.
func (c *Certificate) Pair() tls.Certificate {
	return tls.Certificate{Certificate: [][]byte{c.leaf.Raw}, PrivateKey: c.key, Leaf: c.leaf}
}

// Pool returns a pool that holds only this certificate.
func (c *Certificate) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(c.leaf)
	return pool
}

// newTemplate returns a template that is valid for an hour.
func newTemplate(t testing.TB, commonName string) *x509.Certificate {
	t.Helper()
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: commonName},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
}

// sign creates the certificate and its files. A nil authority means self-signed.
func sign(t testing.TB, template *x509.Certificate, authority *Certificate) *Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	parent, signer := template, key
	if authority != nil {
		parent, signer = authority.leaf, authority.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	c := &Certificate{
		CertPEM:  pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		KeyPEM:   pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
		CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem"),
		leaf: leaf, key: key,
	}
	for path, content := range map[string][]byte{c.CertFile: c.CertPEM, c.KeyFile: c.KeyPEM} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return c
}
