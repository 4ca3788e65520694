package tlsfiles

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// authority returns a certificate of an authority in PEM.
func authority(t *testing.T, name string) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// TestAuthoritiesAreAddedToTheSystems reads a file of authorities: the connection
// trusts them and those of the system, as the Envoy rate limit service does.
func TestAuthoritiesAreAddedToTheSystems(t *testing.T) {
	dir := t.TempDir()
	system, own := authority(t, "system"), authority(t, "own")
	write := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	// The system's authorities are read once in a process, and here first.
	t.Setenv("SSL_CERT_FILE", write("system.pem", system))
	t.Setenv("SSL_CERT_DIR", filepath.Join(dir, "none"))
	c, err := ClientFiles{CA: ClientFile{"CA", write("own.pem", own)}}.Config()
	if err != nil {
		t.Fatal(err)
	}
	want := x509.NewCertPool()
	if !want.AppendCertsFromPEM(system) || !want.AppendCertsFromPEM(own) {
		t.Fatal("no certificates")
	}
	if !c.RootCAs.Equal(want) {
		t.Error("the authorities are not those of the system and of the file")
	}
}
