package tlsfiles

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"

	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/test/testcert"
)

// systemAuthority is the only authority of the system in these tests. A process reads those of the
// system only once, which no other test here causes.
var systemAuthority []byte

// TestAuthoritiesAreAdded checks that a connection trusts the authorities of the file and of the
// system, like the Envoy rate limit service.
func TestAuthoritiesAreAdded(t *testing.T) {
	dir := t.TempDir()
	own := testcert.NewAuthority(t).CertPEM
	write := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		must.Succeed(t, os.WriteFile(path, content, 0o600))
		return path
	}
	if systemAuthority == nil {
		systemAuthority = testcert.NewAuthority(t).CertPEM
		t.Setenv("SSL_CERT_FILE", write("system.pem", systemAuthority))
		t.Setenv("SSL_CERT_DIR", filepath.Join(dir, "missing"))
	}
	c, err := ClientFiles{CA: ClientFile{"CA", write("own.pem", own)}}.Config()
	must.Succeed(t, err)
	want := x509.NewCertPool()
	if !want.AppendCertsFromPEM(systemAuthority) || !want.AppendCertsFromPEM(own) {
		t.Fatal("the test certificates cannot be read")
	}
	if !c.RootCAs.Equal(want) {
		t.Error("the authorities are not those of the system and of the file")
	}
}
