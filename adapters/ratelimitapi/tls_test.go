package ratelimitapi_test

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc/credentials"

	ratelimitpb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/tollgate-dev/tollgate/adapters/ratelimitapi"
	"github.com/tollgate-dev/tollgate/test/testcert"
)

func put(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// call makes one call over a connection of its own.
func (b *bench) call(t *testing.T, trusted, client *testcert.Certificate) error {
	t.Helper()
	c := &tls.Config{RootCAs: trusted.Pool(), ServerName: "server", MinVersion: tls.VersionTLS12}
	if client != nil {
		c.Certificates = []tls.Certificate{client.Pair()}
	}
	_, err := ratelimitpb.NewRateLimitServiceClient(b.dial(t, credentials.NewTLS(c))).ShouldRateLimit(t.Context(), request("k"))
	return err
}

func TestTLSFollowsItsFiles(t *testing.T) {
	dir := t.TempDir()
	c := config()
	c.TLS = ratelimitapi.TLSConfig{Enabled: true, Cert: filepath.Join(dir, "cert"), Key: filepath.Join(dir, "key")}
	refused(t, c, "GRPC_SERVER_TLS_CERT")
	first, second := testcert.NewAuthority(t), testcert.NewAuthority(t)
	server := first.Issue(t, "server")
	put(t, c.TLS.Cert, server.CertPEM)
	put(t, c.TLS.Key, server.KeyPEM)
	b := open(t, c, nil)
	b.load(t)
	if err := b.call(t, first, nil); err != nil {
		t.Fatal(err)
	}
	put(t, c.TLS.Cert, []byte("broken"))
	if err := b.call(t, first, nil); err != nil {
		t.Errorf("while the files are broken: %v", err)
	}
	server = second.Issue(t, "server")
	put(t, c.TLS.Cert, server.CertPEM)
	put(t, c.TLS.Key, append(server.KeyPEM, '\n'))
	if err := b.call(t, second, nil); err != nil {
		t.Errorf("after the change: %v", err)
	}
	if b.call(t, first, nil) == nil {
		t.Error("the old certificate is still in use")
	}
}

func TestMutualTLS(t *testing.T) {
	dir := t.TempDir()
	ours, other := testcert.NewAuthority(t), testcert.NewAuthority(t)
	c := config()
	c.TLS = ratelimitapi.TLSConfig{
		Enabled: true, Cert: filepath.Join(dir, "cert"), Key: filepath.Join(dir, "key"),
		ClientCA: filepath.Join(dir, "ca"), ClientSAN: "proxy",
	}
	server := ours.Issue(t, "server")
	put(t, c.TLS.Cert, server.CertPEM)
	put(t, c.TLS.Key, server.KeyPEM)
	put(t, c.TLS.ClientCA, ours.CertPEM)
	b := open(t, c, nil)
	b.load(t)
	if err := b.call(t, ours, ours.Issue(t, "proxy")); err != nil {
		t.Errorf("the right client: %v", err)
	}
	if b.call(t, ours, nil) == nil || b.call(t, ours, other.Issue(t, "proxy")) == nil || b.call(t, ours, ours.Issue(t, "stranger")) == nil {
		t.Error("a client without the right certificate gets in")
	}
	put(t, c.TLS.ClientCA, []byte("none"))
	refused(t, c, "GRPC_CLIENT_TLS_CACERT")
}
